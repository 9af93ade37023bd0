"""Rows of reservations and of the memory slices that they claim.

A reservation is one row from the moment it is on its Pod to the moment the Pod is over, so that
the state of any GPU at any moment is one query over ``reserved_at`` and ``released_at``.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from django.db import models
from django.db.models import F, Q

from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, RuntimeIdentity
from hami_web.inventory.models import KEY_MAX, NAME_MAX

LIVE = Q(released_at__isnull=True)
"""Reservations and holds that are not over."""
OVER = ("released", "lapsed")
OWNER_MAX = 2 * NAME_MAX
NEVER_BOUND = ("held", "lapsed")


class Phase(models.TextChoices):
    """How far a reservation has come; the words of the scheduler's own phases.

    A hold is not on its Pod yet; one that ended without ever being there has lapsed.
    """

    HELD = "held", "held"
    RESERVED = "reserved", "reserved"
    REALIZED = "realized", "realized"
    TERMINATING = "terminating", "terminating"
    CONFLICTED = "conflicted", "conflicted"
    RELEASED = "released", "released"
    LAPSED = "lapsed", "lapsed"


class MigReservation(models.Model):
    """One device of one container of a Pod, at one placement.

    Names are text, not references: the row outlives node and GPU. ``gpu_memory_slices`` and
    ``memory_mib`` are the figures of GPU and profile when it was reserved, where they were known.
    ``owner`` is the controller of the Pod, as ``Job/train``. The interval begins at
    ``reserved_at``, which of a mere hold is when it was held. ``started_at`` is when the container
    began to run first.
    ``priority`` and ``do_not_evict`` are the Pod's, for plans that would move it.
    ``changed_at`` is when the fact was seen that made the row what it is.
    """

    pod_uid = models.CharField(max_length=KEY_MAX)
    namespace = models.CharField(max_length=NAME_MAX)
    pod = models.CharField(max_length=NAME_MAX)
    node = models.CharField(max_length=NAME_MAX)
    container_index = models.PositiveBigIntegerField()
    device_index = models.PositiveBigIntegerField()
    gpu_uuid = models.CharField(max_length=KEY_MAX)
    profile = models.CharField(max_length=KEY_MAX)
    start = models.PositiveSmallIntegerField()
    size = models.PositiveSmallIntegerField()
    priority = models.IntegerField(default=0)
    do_not_evict = models.BooleanField(default=False)
    gpu_memory_slices = models.PositiveSmallIntegerField(null=True, blank=True)
    memory_mib = models.PositiveIntegerField(null=True, blank=True)
    mig_uuid = models.CharField(max_length=KEY_MAX, blank=True, default="")
    gpu_instance_id = models.PositiveBigIntegerField(null=True, blank=True)
    compute_instance_id = models.PositiveBigIntegerField(null=True, blank=True)
    phase = models.CharField(max_length=16, choices=Phase.choices)
    owner = models.CharField(max_length=OWNER_MAX, blank=True, default="")
    held_at = models.DateTimeField(null=True, blank=True)
    reserved_at = models.DateTimeField()
    realized_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    terminating_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["-reserved_at", "-id"]
        indexes = [
            models.Index(fields=["-reserved_at", "-id"], name="reservation_by_time"),
            models.Index(fields=["gpu_uuid", "reserved_at"], name="reservation_by_gpu"),
            models.Index(fields=["namespace", "-reserved_at"], name="reservation_by_namespace"),
            models.Index(fields=["pod_uid"], name="reservation_by_pod"),
            models.Index(fields=["released_at"], name="reservation_by_end"),
            models.Index(fields=["held_at"], name="reservation_by_hold"),
            models.Index(fields=["realized_at"], name="reservation_by_realizing"),
            models.Index(fields=["started_at"], name="reservation_by_running"),
            models.Index(fields=["terminating_at"], name="reservation_by_deletion"),
            models.Index(fields=["gpu_uuid"], condition=LIVE, name="reservation_live"),
            # However long history is, what is there now is found without it.
            models.Index(
                fields=["-reserved_at", "-id"], condition=LIVE, name="reservation_live_by_time"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["pod_uid", "container_index", "device_index"],
                condition=LIVE,
                name="reservation_live_once",
            ),
            models.CheckConstraint(condition=Q(size__gt=0), name="reservation_has_size"),
            models.CheckConstraint(
                condition=Q(mig_uuid="", gpu_instance_id=None, compute_instance_id=None)
                | (
                    ~Q(mig_uuid="")
                    & Q(gpu_instance_id__isnull=False, compute_instance_id__isnull=False)
                ),
                name="reservation_identity_whole",
            ),
            models.CheckConstraint(
                condition=Q(phase__in=OVER, released_at__isnull=False)
                | (~Q(phase__in=OVER) & LIVE),
                name="reservation_released_has_time",
            ),
            models.CheckConstraint(
                condition=LIVE | Q(released_at__gte=F("reserved_at")),
                name="reservation_ends_after_start",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod} {self.profile} {self.gpu_uuid} {self.placement}"

    @property
    def placement(self) -> Placement:
        return Placement(self.start, self.size)

    @cached_property
    def steps_s(self) -> dict[str, float | None]:
        """Seconds that each step took, None for what did not happen or was not seen; of the row
        as it was when first asked."""
        bound_at = None if self.phase in NEVER_BOUND else self.reserved_at
        return {
            "hold_s": _seconds(self.held_at, bound_at),
            "realize_s": _seconds(bound_at, self.realized_at),
            "start_s": _seconds(self.realized_at, self.started_at),
            "terminate_s": _seconds(self.terminating_at, self.released_at),
            "life_s": _seconds(self.held_at or self.reserved_at, self.released_at),
        }

    def to_domain(self) -> Reservation:
        """The reservation as the core has it."""
        identity = None
        if self.gpu_instance_id is not None and self.compute_instance_id is not None:
            identity = RuntimeIdentity(
                self.mig_uuid, self.gpu_instance_id, self.compute_instance_id
            )
        return Reservation(
            self.container_index,
            self.device_index,
            self.gpu_uuid,
            self.profile,
            self.placement,
            identity,
        )


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None:
        return None
    return max(0.0, round((end - start).total_seconds(), 3))


class MemorySliceClaim(models.Model):
    """One memory slice of a GPU that a live reservation has: nobody else can."""

    reservation = models.ForeignKey(MigReservation, models.CASCADE, related_name="claims")
    gpu_uuid = models.CharField(max_length=KEY_MAX)
    memory_slice = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["gpu_uuid", "memory_slice"], name="memory_slice_claimed_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.gpu_uuid} {self.memory_slice}"


class ContestedMemorySlice(models.Model):
    """A memory slice that a live reservation wants beside the one that has the claim.

    It is there as long as the two overlap; both reservations are in phase ``conflicted``.
    """

    reservation = models.ForeignKey(MigReservation, models.CASCADE, related_name="contested")
    gpu_uuid = models.CharField(max_length=KEY_MAX)
    memory_slice = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["gpu_uuid", "memory_slice", "reservation_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["reservation", "memory_slice"], name="memory_slice_contested_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.gpu_uuid} {self.memory_slice}"


class DoubtKind(models.TextChoices):
    """What is doubtful about the reservations on a Pod."""

    MALFORMED = "malformed", "they cannot be read"
    UNSIGNED = "unsigned", "they are not what the scheduler signed"


class ReservationDoubt(models.Model):
    """A doubt about the reservations on a Pod, from when it was seen to when it was over."""

    pod_uid = models.CharField(max_length=KEY_MAX)
    namespace = models.CharField(max_length=NAME_MAX)
    pod = models.CharField(max_length=NAME_MAX)
    node = models.CharField(max_length=NAME_MAX)
    kind = models.CharField(max_length=16, choices=DoubtKind.choices)
    text = models.CharField(max_length=1000)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-began_at", "-id"]
        indexes = [models.Index(fields=["ended_at"], name="doubt_by_end")]
        constraints = [
            models.UniqueConstraint(
                fields=["pod_uid", "kind"],
                condition=Q(ended_at__isnull=True),
                name="doubt_live_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod} {self.kind}"
