"""Rows of nodes, GPUs, profiles and blocked memory slices, as last seen in the cluster.

``changed_at`` is when the fact was seen that made a row what it is: an older observation never
overwrites it. What is gone stays as a row with ``gone_at``, since history refers to it.
"""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

NAME_MAX = 253
"""A DNS subdomain, the longest name of a Kubernetes object."""
KEY_MAX = 128
"""UUIDs of GPUs and instances, names of profiles and models."""


class Node(models.Model):
    """A node that publishes GPUs. ``closed`` is the code why it takes no new work, or empty.

    ``other_owner`` is the sign that something else cuts its GPUs too, in words, or empty.
    """

    name = models.CharField(max_length=NAME_MAX, unique=True)
    closed = models.CharField(max_length=KEY_MAX, blank=True, default="")
    doubts = models.JSONField(default=list)
    unschedulable = models.BooleanField(default=False)
    other_owner = models.CharField(max_length=KEY_MAX * 2, blank=True, default="")
    changed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ProfileSet(models.Model):
    """The profiles that GPUs of one model publish alike; ``digest`` is over all of them."""

    digest = models.CharField(max_length=64, unique=True)

    def __str__(self) -> str:
        return self.digest[:12]


class Profile(models.Model):
    """One profile. ``placements`` are its legal ``[start, size]`` pairs in memory slices."""

    profile_set = models.ForeignKey(ProfileSet, models.CASCADE, related_name="profiles")
    name = models.CharField(max_length=KEY_MAX)
    memory_mib = models.PositiveIntegerField()
    core_percent = models.PositiveSmallIntegerField()
    compute_slices = models.PositiveBigIntegerField()
    memory_slices = models.PositiveSmallIntegerField()
    placements = models.JSONField()
    instance_limit = models.PositiveBigIntegerField(null=True, blank=True)
    attribute = models.CharField(max_length=KEY_MAX, blank=True, default="")

    class Meta:
        ordering = ["memory_mib", "compute_slices", "name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["profile_set", "name"], name="profile_once"),
            models.CheckConstraint(condition=Q(memory_mib__gt=0), name="profile_has_memory"),
        ]

    def __str__(self) -> str:
        return self.name


class Gpu(models.Model):
    """One physical GPU; its UUID is its identity, its index is not.

    ``memory_slices`` is the length of its placement axis, ``offered`` how many devices its node
    offers the kubelet for it. ``closed`` is the code why it takes no new work, or empty.
    """

    uuid = models.CharField(max_length=KEY_MAX, unique=True)
    node = models.ForeignKey(Node, models.CASCADE, related_name="gpus")
    index = models.PositiveBigIntegerField()
    model = models.CharField(max_length=KEY_MAX)
    offered = models.PositiveBigIntegerField(default=0)
    memory_mib = models.PositiveIntegerField()
    core_percent = models.PositiveBigIntegerField()
    numa = models.PositiveBigIntegerField()
    mode = models.CharField(max_length=KEY_MAX, blank=True)
    healthy = models.BooleanField()
    cordoned = models.BooleanField(default=False)
    closed = models.CharField(max_length=KEY_MAX, blank=True, default="")
    memory_slices = models.PositiveSmallIntegerField()
    profile_set = models.ForeignKey(ProfileSet, models.PROTECT, related_name="gpus")
    changed_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["node__name", "index", "uuid"]

    def __str__(self) -> str:
        return self.uuid


class BlockedInterval(models.Model):
    """Memory slices of a GPU that no reservation explains, with the agent's reason."""

    gpu = models.ForeignKey(Gpu, models.CASCADE, related_name="blocked")
    start = models.PositiveSmallIntegerField()
    size = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500, blank=True)
    since = models.DateTimeField()

    class Meta:
        ordering = ["gpu_id", "start", "size"]
        constraints = [
            models.UniqueConstraint(fields=["gpu", "start", "size"], name="blocked_once"),
            models.CheckConstraint(condition=Q(size__gt=0), name="blocked_has_size"),
        ]

    def __str__(self) -> str:
        return f"{self.start}:{self.size}"

    @property
    def end(self) -> int:
        """First memory slice after the interval."""
        return self.start + self.size


class StateInterval(models.Model):
    """What something was from one moment to another; open while it is so.

    ``change`` says what was other before, ``appeared`` for what was not there. ``is_last`` marks
    the end of what is gone.
    """

    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    change = models.CharField(max_length=500)
    is_last = models.BooleanField(default=False)

    class Meta:
        abstract = True


class NodeState(StateInterval):
    """A node as it was; see :class:`Node`."""

    node = models.ForeignKey(Node, models.CASCADE, related_name="states")
    closed = models.CharField(max_length=KEY_MAX, blank=True)
    doubts = models.JSONField(default=list)
    unschedulable = models.BooleanField()
    other_owner = models.CharField(max_length=KEY_MAX * 2, blank=True)

    class Meta:
        ordering = ["node__name", "began_at", "id"]
        indexes = [
            models.Index(fields=["began_at"], name="node_state_by_start"),
            models.Index(fields=["ended_at"], name="node_state_by_end"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["node"], condition=Q(ended_at__isnull=True), name="node_state_open_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.node_id} {self.change}"


class GpuState(StateInterval):
    """A GPU as it was; see :class:`Gpu`."""

    gpu = models.ForeignKey(Gpu, models.CASCADE, related_name="states")
    node = models.ForeignKey(Node, models.CASCADE, related_name="gpu_states")
    index = models.PositiveBigIntegerField()
    mode = models.CharField(max_length=KEY_MAX, blank=True)
    healthy = models.BooleanField()
    cordoned = models.BooleanField()
    closed = models.CharField(max_length=KEY_MAX, blank=True)
    memory_slices = models.PositiveSmallIntegerField()
    profile_set = models.ForeignKey(ProfileSet, models.PROTECT, related_name="gpu_states")

    class Meta:
        ordering = ["node__name", "index", "gpu__uuid", "began_at", "id"]
        indexes = [
            models.Index(fields=["began_at"], name="gpu_state_by_start"),
            models.Index(fields=["ended_at"], name="gpu_state_by_end"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["gpu"], condition=Q(ended_at__isnull=True), name="gpu_state_open_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.change}"

    @property
    def blocked(self) -> list[BlockedState]:
        """What was blocked then, for rows of ``selectors.gpus_at``, which have read it."""
        then: list[BlockedState] = self.gpu.blocked_then  # type: ignore[attr-defined]  # prefetched
        return then


class BlockedState(StateInterval):
    """Memory slices as they were blocked; see :class:`BlockedInterval`."""

    gpu = models.ForeignKey(Gpu, models.CASCADE, related_name="blocked_states")
    start = models.PositiveSmallIntegerField()
    size = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["gpu_id", "start", "size", "began_at", "id"]
        indexes = [
            models.Index(fields=["began_at"], name="blocked_state_by_start"),
            models.Index(fields=["ended_at"], name="blocked_state_by_end"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["gpu", "start", "size"],
                condition=Q(ended_at__isnull=True),
                name="blocked_state_open_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.start}:{self.size} {self.change}"

    @property
    def since(self) -> datetime:
        """When this began, as of a :class:`BlockedInterval`."""
        return self.began_at

    @property
    def end(self) -> int:
        """First memory slice after the interval."""
        return self.start + self.size


LIVE = Q(gone_at__isnull=True)
"""Rows of what the cluster has now."""
