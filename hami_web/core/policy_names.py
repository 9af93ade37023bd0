"""Names of the placement policies, as the policy file and the Pods' annotations write them."""

from __future__ import annotations

from typing import Final

CAP_LOSS: Final = "cap-loss"
BINPACK: Final = "binpack"
SPREAD: Final = "spread"
FIRST_FIT: Final = "first-fit"
HAMI: Final = "hami"

# words that only HAMi's rule knows
MUTEX: Final = "mutex"
NUMA: Final = "numa"
TOPOLOGY: Final = "topology-aware"

RULES: Final = (CAP_LOSS, BINPACK, SPREAD, FIRST_FIT)
"""What may choose nodes or GPUs, unless the placement policy is HAMi's."""
PLACEMENT_POLICIES: Final = (*RULES, HAMI)
HAMI_NODE_POLICIES: Final = (BINPACK, SPREAD)
HAMI_GPU_POLICIES: Final = (BINPACK, SPREAD, MUTEX, NUMA, TOPOLOGY)
"""Words of HAMi's GPU policy; a list of them, but for the last, chains them."""
