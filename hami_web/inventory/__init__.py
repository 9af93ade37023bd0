"""Django app: the mirror of nodes, GPUs and what they can be cut into."""
