"""REST edge: reads of the mirror under ``/api/v1/``."""
