"""Shapes of what is read. Memory in MiB, times in UTC, placements in memory slices."""
