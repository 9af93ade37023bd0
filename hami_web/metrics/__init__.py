"""Prometheus edge: what the scheduling state shows, as metrics."""
