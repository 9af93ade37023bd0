"""Many Pods bound to one node at once start one after another, as fast as it makes them."""
