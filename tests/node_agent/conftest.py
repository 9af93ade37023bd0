"""Fixtures of the agent's tests; they need no Django."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.node_agent.lab import Lab, open_lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A node with one A100."""
    with open_lab("a100-sxm4-40gb") as made:
        yield made


@pytest.fixture
def two_gpus() -> Iterator[Lab]:
    """A node with two A100."""
    with open_lab("a100-sxm4-40gb", "a100-sxm4-40gb") as made:
        yield made
