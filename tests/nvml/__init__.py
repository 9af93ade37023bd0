"""The simulated node: its rules, its shared state and its command."""
