"""What people change: each action is checked by its caller, done once, and recorded."""
