"""Views by resource. Each checks its parameters and asks one selector."""
