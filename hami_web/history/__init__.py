"""Django app: what happened to the mirror and what it shows over time."""
