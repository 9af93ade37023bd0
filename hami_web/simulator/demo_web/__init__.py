"""What the demo adds to the pages of the dashboard; only its own web process loads it."""
