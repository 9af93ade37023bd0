"""Rows of take-overs: where each node is, what happened to it, and its lifecycle tests."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from hami_web.handover.lifecycle import TrialState
from hami_web.handover.steps import Direction, Step, direction_of
from hami_web.inventory.models import KEY_MAX, NAME_MAX

TEXT_MAX = 2000


class Outcome(models.TextChoices):
    """How a take-over ended; OPEN while it goes on."""

    OPEN = "open", "open"
    DONE = "done", "done"
    ROLLED_BACK = "rolled_back", "rolled back"
    CLOSED = "closed", "closed"


class EventKind(models.TextChoices):
    """What happened to a take-over."""

    STARTED = "started", "started"
    REACHED = "reached", "reached"
    LOST = "lost", "lost"
    APPROVED = "approved", "approved"
    WITHDRAWN = "withdrawn", "withdrawn"
    CHANGED = "changed", "changed"
    REFUSED = "refused", "refused"
    TESTED = "tested", "tested"
    TURNED_BACK = "turned_back", "turned back"
    ENDED = "ended", "ended"


class NodeHandover(models.Model):
    """One node on its way; at most one is open for a node.

    ``revision`` counts writes: whoever writes proves that nobody wrote since. ``saved_labels``
    are the labels that we changed, as they were before (null: absent). ``regressed_from`` is the
    step from which it fell back, until that is reached again.
    """

    node = models.CharField(max_length=NAME_MAX)
    node_uid = models.CharField(max_length=KEY_MAX)
    step = models.CharField(max_length=KEY_MAX, choices=[(s.value, s.value) for s in Step])
    outcome = models.CharField(max_length=16, choices=Outcome.choices, default=Outcome.OPEN)
    started_at = models.DateTimeField()
    started_by = models.CharField(max_length=NAME_MAX)
    entered_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    approved_by = models.CharField(max_length=NAME_MAX, blank=True, default="")
    approved_at = models.DateTimeField(null=True, blank=True)
    was_cordoned = models.BooleanField(null=True, blank=True)
    saved_labels = models.JSONField(default=dict)
    obstacles = models.JSONField(default=list)
    would_do = models.JSONField(default=list)
    looked_at = models.DateTimeField(null=True, blank=True)
    regressed_from = models.CharField(max_length=KEY_MAX, blank=True, default="")
    revision = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=Q(outcome=Outcome.OPEN), name="handover_open_once"
            ),
            models.CheckConstraint(
                condition=Q(outcome=Outcome.OPEN, ended_at__isnull=True)
                | (~Q(outcome=Outcome.OPEN) & Q(ended_at__isnull=False)),
                name="handover_end_has_time",
            ),
            models.CheckConstraint(
                condition=Q(approved_at__isnull=True, approved_by="")
                | (Q(approved_at__isnull=False) & ~Q(approved_by="")),
                name="handover_approval_has_name",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True) | Q(ended_at__gte=F("started_at")),
                name="handover_ends_after_start",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} {self.step}"

    @property
    def is_open(self) -> bool:
        return self.outcome == Outcome.OPEN

    @property
    def direction(self) -> Direction:
        return direction_of(Step(self.step))


class HandoverEvent(models.Model):
    """One thing that happened, for people and for the change ticket."""

    handover = models.ForeignKey(NodeHandover, models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=16, choices=EventKind.choices)
    step = models.CharField(max_length=KEY_MAX)
    actor = models.CharField(max_length=NAME_MAX, blank=True, default="")
    text = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["handover_id", "id"]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.kind} {self.step}"


class ProfileTest(models.Model):
    """The lifecycle test of one profile; times say how long each state took to come."""

    handover = models.ForeignKey(NodeHandover, models.CASCADE, related_name="tests")
    model = models.CharField(max_length=KEY_MAX)
    profile = models.CharField(max_length=KEY_MAX)
    gpu = models.CharField(max_length=KEY_MAX)
    attempt = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(
        max_length=16,
        choices=[(s.value, s.value) for s in TrialState],
        default=TrialState.WAITING.value,
    )
    entered_at = models.DateTimeField()
    place = models.JSONField(null=True, blank=True)
    agent_uid = models.CharField(max_length=KEY_MAX, blank=True, default="")
    error = models.CharField(max_length=TEXT_MAX, blank=True, default="")
    took_s = models.JSONField(default=dict)

    class Meta:
        ordering = ["handover_id", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["handover", "model", "profile"], name="handover_profile_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.profile} {self.state}"
