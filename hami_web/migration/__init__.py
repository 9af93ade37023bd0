"""Django app: checks whether nodes are ready to be taken over from older set-ups."""
