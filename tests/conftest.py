"""Shared by all tests; must not import Django."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.spread import FilesAndKubernetes, long_first

settings.register_profile("dev", max_examples=50, deadline=None)
# The same examples in every run: what a change is judged by must not depend on chance. New examples
# are looked for wherever CI is not set.
settings.register_profile(
    "ci",
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesAndKubernetes | None:
    """Which process runs which tests, where there are several (``-n``)."""
    return FilesAndKubernetes(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several processes begin with what takes longest, so that none is left with it at the end."""
    if hasattr(config, "workerinput"):
        long_first(items)
