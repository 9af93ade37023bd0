"""The Lease by which a node agent says that its node can take new work.

An agent renews ``agent_lease_name(node)`` while it serves the kubelet, with the node's name as
holder; it empties the holder as soon as it does not (it stops, the kubelet restarts, NVML is gone),
which closes the node at once. Readers measure age on their own monotonic clock from the moment
they saw a renewal, so that clocks of two machines are never compared beyond a first guess.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

AGENT_LEASE_NAMESPACE: Final = "hami-system"
"""Default; agents and extender must be told the same one."""
AGENT_LEASE_PREFIX: Final = "hami-node-agent-"
AGENT_LEASE_SECONDS: Final = 30
"""``leaseDurationSeconds``: without a renewal for so long the node takes no new work."""
AGENT_RENEW_SECONDS: Final = 10.0
"""Pause between renewals; small writes, so that thousands of nodes are no load."""
AGENT_LEASE_LABEL: Final = "hami.io/lease"
AGENT_LEASE_ROLE: Final = "node-agent"
"""Value of the label, by which the extender selects these Leases in its watch."""

_NAME_MAX: Final = 253


def agent_lease_name(node: str) -> str:
    """Name of a node's Lease; a node's name that makes it too long is cut and told by digest."""
    name = AGENT_LEASE_PREFIX + node
    if len(name) <= _NAME_MAX:
        return name
    digest = blake2b(node.encode(), digest_size=8).hexdigest()
    return f"{name[: _NAME_MAX - len(digest) - 1].rstrip('.-')}-{digest}"
