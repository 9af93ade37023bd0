"""Costs of the dashboard against bare ones."""
