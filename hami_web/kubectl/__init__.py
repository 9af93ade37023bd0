"""``kubectl hami``: the cluster's slices from a terminal, with or without the web service."""
