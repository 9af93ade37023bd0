"""The extender as a Django app: it brings its command and the system checks."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ExtenderConfig(AppConfig):
    """Registers checks and nothing else."""

    name = "hami_web.extender"

    def ready(self) -> None:
        # By name: the checks sit above the edges, which must not import them.
        import_module("hami_web.checks")
