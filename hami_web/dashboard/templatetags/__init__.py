"""Filters of the dashboard's templates."""
