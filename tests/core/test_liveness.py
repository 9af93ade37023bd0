"""Names of the agents' Leases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.liveness import agent_lease_name

NODE_NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True)


def test_a_lease_is_named_after_its_node() -> None:
    assert agent_lease_name("gpu-n1") == "hami-node-agent-gpu-n1"


@given(NODE_NAMES)
def test_a_lease_name_fits_an_object_name(node: str) -> None:
    name = agent_lease_name(node)
    assert len(name) <= 253
    assert name[-1].isalnum()


@given(st.lists(st.text("ab", min_size=200, max_size=253), unique=True, min_size=2, max_size=20))
def test_long_names_of_different_nodes_stay_different(nodes: list[str]) -> None:
    assert len({agent_lease_name(node) for node in nodes}) == len(nodes)
