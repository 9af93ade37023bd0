"""Questions about the mirrored cluster, answered by the core's and the scheduler's own rules."""
