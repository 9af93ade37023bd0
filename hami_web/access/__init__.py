"""Who asks, what they may do, what they may see, and what was done: people, programs, audit."""
