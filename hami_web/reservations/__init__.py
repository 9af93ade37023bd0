"""Django app: the mirror of reservations, as intervals with their whole life."""
