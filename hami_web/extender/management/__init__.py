"""Commands of the extender."""
