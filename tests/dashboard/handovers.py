"""Take-overs as rows, for tests of pages."""

from __future__ import annotations

from datetime import datetime

from hami_web.handover.models import EventKind, HandoverEvent, NodeHandover, ProfileTest
from hami_web.handover.obstacles import Obstacle


def under_way(now: datetime, count: int = 1) -> NodeHandover:
    """The first take-over, in the middle of its drain, with so many obstacles, tests and events."""
    row = NodeHandover.objects.create(
        pk=1, node="n1", node_uid="uid-1", step="drain", started_at=now, started_by="ann",
        entered_at=now, looked_at=now, regressed_from="publish", would_do=["evict team-a/train"],
        obstacles=[
            Obstacle("LegacyPod", f"Pod team-a/train-{number}", "GPU-1[0-0]").document()
            for number in range(count)
        ],
    )  # fmt: skip
    for number in range(count):
        text = f"LegacyPod Pod team-a/train-{number}: GPU-1[0-0]"
        HandoverEvent.objects.create(
            handover=row, at=now, kind=EventKind.LOST, step="drain", text=text
        )
        ProfileTest.objects.create(
            handover=row, model="A30", profile=f"{number + 1}g.6gb", gpu="GPU-1", entered_at=now,
            state="failed", error="its Pod ended", took_s={"created": 1.5, "realized": 2},
        )  # fmt: skip
    return row
