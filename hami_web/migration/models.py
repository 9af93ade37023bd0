"""Rows of readiness checks: a run, what it found of each node, and the findings behind it."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from hami_web.inventory.models import KEY_MAX, NAME_MAX

TEXT_MAX = 2000


class RunState(models.TextChoices):
    """How far a check is; a run that is requested is a row that some worker takes."""

    REQUESTED = "requested", "requested"
    RUNNING = "running", "running"
    FINISHED = "finished", "finished"
    FAILED = "failed", "failed"


class Readiness(models.TextChoices):
    """Whether a node may be taken over. Doubt is no readiness."""

    READY = "ready", "ready"
    NOT_READY = "not_ready", "not ready"
    UNKNOWN = "unknown", "unknown"


class Severity(models.TextChoices):
    """What a finding means for the take-over."""

    BLOCKER = "blocker", "it must be mended first"
    WARNING = "warning", "it should be known"
    NOTE = "note", "nothing to do"


class MigrationRun(models.Model):
    """One check, dry and repeatable; ``error`` says why it failed."""

    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.REQUESTED)
    requested_at = models.DateTimeField()
    requested_by = models.CharField(max_length=NAME_MAX)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=TEXT_MAX, blank=True, default="")

    class Meta:
        ordering = ["-requested_at", "-id"]
        indexes = [models.Index(fields=["-requested_at", "-id"], name="run_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["finished", "failed"], finished_at__isnull=False)
                | (~Q(state__in=["finished", "failed"]) & Q(finished_at__isnull=True)),
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

    ``subject`` is the object that it is about, ``evidence`` what was seen of it, ``consequence``
    what would happen, ``mend`` what to do.
    """

    run = models.ForeignKey(MigrationRun, models.CASCADE, related_name="findings")
    node = models.CharField(max_length=NAME_MAX, blank=True, default="")
    severity = models.CharField(max_length=16, choices=Severity.choices)
    code = models.CharField(max_length=KEY_MAX)
    subject = models.CharField(max_length=1000)
    evidence = models.TextField()
    consequence = models.CharField(max_length=TEXT_MAX)
    mend = models.CharField(max_length=TEXT_MAX)

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
