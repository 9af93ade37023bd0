"""Writes the mirror: a live feed from list-and-watch, and Celery tasks that correct it."""
