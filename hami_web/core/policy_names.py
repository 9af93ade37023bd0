"""Names of the placement policies, as the policy file and the Pods' annotations write them."""

from __future__ import annotations

from typing import Final

CAP_LOSS: Final = "cap-loss"
BINPACK: Final = "binpack"
SPREAD: Final = "spread"
FIRST_FIT: Final = "first-fit"

PLACEMENT_POLICIES: Final = (CAP_LOSS, BINPACK, SPREAD, FIRST_FIT)
NODE_POLICIES: Final = (CAP_LOSS, BINPACK, SPREAD, FIRST_FIT)
GPU_POLICIES: Final = (CAP_LOSS, BINPACK, SPREAD, FIRST_FIT)
