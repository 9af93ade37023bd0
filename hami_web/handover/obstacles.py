"""What keeps a step from being reached: codes, and how obstacles are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hami_web.migration.findings import FoundFinding


class ObstacleCode(StrEnum):
    """What only a take-over can meet; a check's findings keep their own codes. Stable."""

    NODE_GONE = "NodeGone"
    NODE_REPLACED = "NodeReplaced"
    NOT_CORDONED = "NotCordoned"
    STILL_CORDONED = "StillCordoned"
    NOT_EVICTED_BY_US = "NotEvictedByUs"
    EVICTION_REFUSED = "EvictionRefused"
    OTHER_COULD_RUN = "OtherPluginCouldRun"
    SELECTOR_SHARED = "SelectorShared"
    AGENT_ABSENT = "AgentAbsent"
    AGENT_REMAINS = "AgentRemains"
    NOT_PUBLISHED = "NotPublished"
    NOT_READY = "NodeNotReadyForMig"
    NOTHING_TO_TEST = "NothingToTest"
    TEST_MISSING = "LifecycleTestMissing"
    TEST_FAILED = "LifecycleTestFailed"
    OUR_POD_REMAINS = "OurPodRemains"
    LABEL_DIFFERS = "LabelDiffers"
    NOT_PERMITTED = "NotPermitted"
    NOT_DONE = "NotDone"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing in the way: its code, the object, and what was seen of it, in plain facts."""

    code: str
    subject: str
    evidence: str

    def document(self) -> dict[str, str]:
        """As it is stored."""
        return {"code": self.code, "subject": self.subject, "evidence": self.evidence}


def of_finding(finding: FoundFinding) -> Obstacle:
    """A finding that is in the way of a step."""
    return Obstacle(finding.code.value, finding.subject, finding.evidence)


def encode_obstacles(obstacles: Iterable[Obstacle]) -> list[dict[str, str]]:
    """As they are stored, each once."""
    return [item.document() for item in dict.fromkeys(obstacles)]


def decode_obstacles(stored: object) -> tuple[Obstacle, ...]:
    """What is stored; rows of another release that do not look like ours are left out."""
    items = stored if isinstance(stored, list) else []
    return tuple(
        Obstacle(*(str(item.get(key, "")) for key in ("code", "subject", "evidence")))
        for item in items
        if isinstance(item, Mapping)
    )
