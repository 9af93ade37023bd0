"""Rows of readiness checks: a run, what it found of each node, and the findings behind it."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from hami_web.inventory.models import KEY_MAX, NAME_MAX
from hami_web.migration import codes
from hami_web.migration.severity import Severity

TEXT_MAX = 2000


class RunState(models.TextChoices):
    """How far a check is; a run that is requested is a row that some worker takes."""

    REQUESTED = "requested", "requested"
    RUNNING = "running", "running"
    FINISHED = "finished", "finished"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


ENDED = (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED)
_ENDED = [state.value for state in ENDED]


class Readiness(models.TextChoices):
    """Whether a node may be taken over. Doubt is no readiness."""

    READY = "ready", "ready"
    NOT_READY = "not_ready", "not ready"
    UNKNOWN = "unknown", "unknown"


class MigrationRun(models.Model):
    """One check, dry and repeatable; ``error`` says why it failed.

    ``parts_done`` of ``parts`` are looked at, ``part`` is looked at now. ``seen_at`` is when its
    worker last said so: one that is silent has died, and the check begins anew elsewhere.
    ``node`` is empty for a check of all nodes.
    """

    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.REQUESTED)
    requested_at = models.DateTimeField()
    requested_by = models.CharField(max_length=NAME_MAX)
    # A default of the database too: after a rollback the former version writes rows without it.
    node = models.CharField(max_length=NAME_MAX, blank=True, default="", db_default="")
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=TEXT_MAX, blank=True, default="")
    seen_at = models.DateTimeField(null=True, blank=True)
    part = models.CharField(max_length=KEY_MAX, blank=True, default="")
    parts_done = models.PositiveSmallIntegerField(default=0)
    parts = models.PositiveSmallIntegerField(default=0)
    cancelled_by = models.CharField(max_length=NAME_MAX, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    """Of the web request that asked for it; the worker's lines about it carry it."""

    class Meta:
        ordering = ["-requested_at", "-id"]
        indexes = [models.Index(fields=["-requested_at", "-id"], name="run_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=_ENDED, finished_at__isnull=False)
                | (~Q(state__in=_ENDED) & Q(finished_at__isnull=True)),
                name="run_finished_has_time",
            ),
            models.CheckConstraint(
                condition=(Q(state=RunState.FAILED) & ~Q(error=""))
                | (~Q(state=RunState.FAILED) & Q(error="")),
                name="run_failed_says_why",
            ),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True) | Q(finished_at__gte=F("requested_at")),
                name="run_ends_after_start",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pk} {self.state}"


class NodeReadiness(models.Model):
    """What a run says of one node; the name outlives the node."""

    run = models.ForeignKey(MigrationRun, models.CASCADE, related_name="nodes")
    node = models.CharField(max_length=NAME_MAX)
    readiness = models.CharField(max_length=16, choices=Readiness.choices)
    checked_at = models.DateTimeField()

    class Meta:
        ordering = ["run_id", "node"]
        constraints = [models.UniqueConstraint(fields=["run", "node"], name="node_once_in_run")]

    def __str__(self) -> str:
        return f"{self.node} {self.readiness}"


class Finding(models.Model):
    """One finding of a run; ``node`` is empty for what concerns the whole cluster.

    ``subject`` is the object that it is about, ``evidence`` what was seen of it; what it means and
    what to do follows from the code, in the reader's language.
    """

    run = models.ForeignKey(MigrationRun, models.CASCADE, related_name="findings")
    node = models.CharField(max_length=NAME_MAX, blank=True, default="")
    severity = models.CharField(max_length=16, choices=Severity.choices)
    code = models.CharField(max_length=KEY_MAX)
    subject = models.CharField(max_length=1000)
    evidence = models.TextField()

    class Meta:
        ordering = ["run_id", "node", "id"]
        indexes = [models.Index(fields=["run", "severity"], name="finding_by_severity")]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "node", "code", "subject"], name="finding_once_in_run"
            )
        ]

    def __str__(self) -> str:
        return f"{self.severity} {self.code} {self.subject}"

    @property
    def consequence(self) -> str:
        """What would happen."""
        return codes.consequence(self.code, self.node, self.subject)

    @property
    def mend(self) -> str:
        """What to do."""
        return codes.mend(self.code, self.node, self.subject)
