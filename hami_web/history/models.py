"""Rows of samples, refusals, corrections of the mirror, and alerts."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from hami_web.inventory.models import KEY_MAX, NAME_MAX

TEXT_MAX = 2000


class Feed(models.Model):
    """How far a live feed has come: everything that it saw until ``caught_up_at`` is written.

    ``cursor`` is where it continues, for feeds that are read from one.
    """

    name = models.CharField(max_length=KEY_MAX, unique=True)
    caught_up_at = models.DateTimeField()
    cursor = models.CharField(max_length=KEY_MAX, blank=True, default="")

    def __str__(self) -> str:
        return self.name


class Tenure(models.Model):
    """Which process may do what only one may; ``until`` is by the database's clock."""

    name = models.CharField(max_length=KEY_MAX, unique=True)
    holder = models.CharField(max_length=NAME_MAX, blank=True)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} {self.holder}"


class Heartbeat(models.Model):
    """When a part of the worker last gave a sign of life."""

    name = models.CharField(max_length=KEY_MAX, unique=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Tally(models.Model):
    """A number that outlives the processes that count it; ``key`` is JSON of name and labels."""

    key = models.CharField(max_length=1000, unique=True)
    value = models.FloatField()

    def __str__(self) -> str:
        return f"{self.key} {self.value:g}"


class Reconciliation(models.Model):
    """One comparison of the mirror with a complete list of the cluster."""

    began_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    nodes = models.PositiveIntegerField()
    pods = models.PositiveIntegerField()
    corrections = models.PositiveIntegerField()

    class Meta:
        ordering = ["-began_at", "-id"]

    def __str__(self) -> str:
        return f"{self.began_at:%F %T}: {self.corrections}"


class DriftCause(models.TextChoices):
    """Why the mirror was not equal to the cluster."""

    FIRST = "first", "the mirror was never compared before"
    UNWATCHED = "unwatched", "nobody followed the cluster when it happened"
    ALTERED = "altered", "the feed was up to date: rows were changed by another hand"


class Drift(models.Model):
    """One correction that a reconciliation made."""

    reconciliation = models.ForeignKey(Reconciliation, models.CASCADE, related_name="drifts")
    at = models.DateTimeField()
    cause = models.CharField(max_length=16, choices=DriftCause.choices)
    kind = models.CharField(max_length=16)
    entity = models.CharField(max_length=16)
    key = models.CharField(max_length=1000)
    detail = models.CharField(max_length=1000, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["-at", "-id"], name="drift_by_time")]

    def __str__(self) -> str:
        return f"{self.kind} {self.entity} {self.key}"


class AlertState(models.TextChoices):
    """What people know of an alert."""

    OPEN = "open", "open"
    ACKNOWLEDGED = "acknowledged", "acknowledged"
    RESOLVED = "resolved", "resolved"


class Alert(models.Model):
    """A condition that someone should look at, from when it was seen to when it was over.

    ``seen_at`` is when the condition last held. ``reopened`` counts how often it came back after
    it was resolved; who had acknowledged it before is then forgotten, and told in the audit log.
    """

    code = models.CharField(max_length=KEY_MAX)
    subject = models.CharField(max_length=1000)
    namespace = models.CharField(max_length=NAME_MAX, blank=True, default="")
    text = models.CharField(max_length=TEXT_MAX)
    state = models.CharField(max_length=16, choices=AlertState.choices, default=AlertState.OPEN)
    raised_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=NAME_MAX, blank=True, default="")
    note = models.CharField(max_length=TEXT_MAX, blank=True, default="")
    resolved_at = models.DateTimeField(null=True, blank=True)
    reopened = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-raised_at", "-id"]
        indexes = [models.Index(fields=["-raised_at", "-id"], name="alert_by_time")]
        constraints = [
            models.UniqueConstraint(
                fields=["code", "subject"],
                condition=Q(resolved_at__isnull=True),
                name="alert_open_once",
            ),
            models.CheckConstraint(
                condition=Q(state=AlertState.RESOLVED, resolved_at__isnull=False)
                | (~Q(state=AlertState.RESOLVED) & Q(resolved_at__isnull=True)),
                name="alert_resolved_has_time",
            ),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by="")
                | (Q(acknowledged_at__isnull=False) & ~Q(acknowledged_by="")),
                name="alert_acknowledged_by_someone",
            ),
            models.CheckConstraint(
                condition=~Q(state=AlertState.ACKNOWLEDGED) | Q(acknowledged_at__isnull=False),
                name="alert_acknowledged_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"


class Sample(models.Model):
    """Use of memory slices at one moment; ``node`` is empty for the whole cluster.

    ``fragmentation`` is the core's measure over GPUs that take new work, 0 … 1.
    """

    at = models.DateTimeField()
    node = models.CharField(max_length=NAME_MAX, blank=True, default="")
    gpus = models.PositiveIntegerField()
    memory_slices = models.PositiveIntegerField()
    reserved_memory_slices = models.PositiveIntegerField()
    realized_memory_slices = models.PositiveIntegerField()
    blocked_memory_slices = models.PositiveIntegerField()
    fragmentation = models.FloatField()

    class Meta:
        ordering = ["-at", "node"]
        constraints = [
            models.UniqueConstraint(fields=["at", "node"], name="sample_once"),
            models.CheckConstraint(
                condition=Q(fragmentation__gte=0, fragmentation__lte=1),
                name="sample_fragmentation_is_share",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node or 'cluster'} {self.at:%F %T}"


class Refusal(models.Model):
    """What the scheduler said of a Pod that found no node, each text of a Pod once."""

    pod_uid = models.CharField(max_length=KEY_MAX)
    namespace = models.CharField(max_length=NAME_MAX)
    pod = models.CharField(max_length=NAME_MAX)
    digest = models.CharField(max_length=64)
    message = models.TextField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    times = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-last_at", "-id"]
        indexes = [models.Index(fields=["namespace", "pod"], name="refusal_by_pod")]
        constraints = [
            models.UniqueConstraint(fields=["pod_uid", "digest"], name="refusal_text_once")
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}: {self.message}"


class Explanation(models.Model):
    """A refusal by nodes and GPUs, as the extender worked it out; equal ones are one row.

    ``body`` is only shown, never queried: nodes with a reason per GPU, reasons counted, what came
    closest, what was asked for.
    """

    digest = models.CharField(max_length=64, unique=True)
    body = models.JSONField()

    def __str__(self) -> str:
        return self.digest[:12]


class Outcome(models.TextChoices):
    """What a call of kube-scheduler ended in; the extender's words."""

    HELD = "held", "held"
    REFUSED = "refused", "refused"
    INVALID = "invalid", "invalid"
    BOUND = "bound", "bound"
    BIND_FAILED = "bind_failed", "bind_failed"


class Decision(models.Model):
    """What was decided for a Pod, each set of reasons once, and how often from when to when.

    ``entry`` and ``entry_times`` are the extender's own id of it and count, by which a second
    reading adds nothing; another run of the extender has other ids.
    """

    pod_uid = models.CharField(max_length=KEY_MAX)
    namespace = models.CharField(max_length=NAME_MAX)
    pod = models.CharField(max_length=NAME_MAX)
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    digest = models.CharField(max_length=64)
    message = models.CharField(max_length=TEXT_MAX)
    node = models.CharField(max_length=NAME_MAX, blank=True, default="")
    code = models.CharField(max_length=KEY_MAX, blank=True, default="")
    explanation = models.ForeignKey(
        Explanation, models.PROTECT, null=True, blank=True, related_name="decisions"
    )
    times = models.PositiveIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    entry = models.CharField(max_length=KEY_MAX)
    entry_times = models.PositiveIntegerField()

    class Meta:
        ordering = ["-last_at", "-id"]
        indexes = [
            models.Index(fields=["-last_at", "-id"], name="decision_by_time"),
            models.Index(fields=["namespace", "pod", "-last_at"], name="decision_by_pod"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["pod_uid", "outcome", "digest"], name="decision_reasons_once"
            ),
            models.CheckConstraint(
                condition=Q(last_at__gte=models.F("first_at")), name="decision_ends_after_start"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}: {self.outcome}"
