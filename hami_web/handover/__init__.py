"""Django app: leads nodes, one step at a time, to our ownership of their GPUs, and back."""
