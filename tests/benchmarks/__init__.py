"""Measurements with goals: ``python -m tests.benchmarks.placement`` and ``…filter``."""
