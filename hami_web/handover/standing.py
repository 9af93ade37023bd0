"""Where a take-over stands, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hami_web.handover.lifecycle import Trial
from hami_web.handover.steps import Step


@dataclass(frozen=True, slots=True)
class Standing:
    """One take-over.

    ``uid`` is the node's identity when it began. ``saved`` has the labels that were changed, as
    they were before (None: absent); ``was_cordoned`` is None until that was seen.
    """

    node: str
    uid: str
    step: Step
    approved: bool = False
    was_cordoned: bool | None = None
    saved: Mapping[str, str | None] | None = None
    tests: tuple[Trial, ...] = ()
