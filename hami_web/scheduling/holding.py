"""Holds made from choices, and from what a bound Pod already has."""

from __future__ import annotations

from hami_web.core.log_lines import current
from hami_web.core.quota import Usage, total
from hami_web.core.selection import Choice
from hami_web.scheduling.holds import Hold
from hami_web.scheduling.pods import PodRecord
from hami_web.scheduling.records import NodeRecord, PodIdentity, devices_of


def hold_choice(identity: PodIdentity, node: str, choice: Choice, *, now: float) -> Hold:
    """What a choice holds for a Pod."""
    return Hold(
        identity.uid,
        identity.namespace,
        identity.name,
        node,
        choice.reservations,
        len(choice.devices),
        choice.devices,
        now,
        current("request_id"),
    )


def hold_of_bound(
    bound: PodRecord, record: NodeRecord | None, containers: int, *, now: float
) -> Hold:
    """The answer for a Pod that is bound: what it has, never something new."""
    reservations = tuple(claim.reservation for claim in bound.claims)
    devices = devices_of(record, reservations, containers)
    identity = bound.identity
    return Hold(
        identity.uid,
        identity.namespace,
        identity.name,
        bound.node,
        reservations,
        containers,
        devices,
        now,
    )


def usage_of(choice: Choice) -> Usage:
    """What a choice adds to its namespace."""
    return total(
        Usage(device.memory_mib, device.core_percent)
        for container in choice.devices
        for device in container
    )
