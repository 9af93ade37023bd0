"""The rights without which a role cannot work, by ServiceAccount; ``deploy/rbac/`` grants them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from hami_web.cluster.reviews import Asked

Questions = list[tuple[str, Asked]]
Answering = Callable[[Questions], Mapping[tuple[str, Asked], bool | None]]
"""Answers questions about users by name; None where nobody answers."""

_LEASES: Final = "coordination.k8s.io"
_EVENTS: Final = "events.k8s.io"


def _rights(verbs: str, resource: str, group: str = "", subresource: str = "") -> list[Asked]:
    return [Asked(verb, resource, group, subresource) for verb in verbs.split()]


RIGHTS: Final[dict[str, tuple[Asked, ...]]] = {
    "extender": (
        *_rights("list watch patch", "pods"),
        *_rights("create", "pods", subresource="binding"),
        *_rights("list watch patch", "nodes"),
        *_rights("create patch", "events", _EVENTS),
    ),
    "node-agent": (
        *_rights("list watch patch", "pods"),
        *_rights("get patch", "nodes"),
        *_rights("patch", "nodes", subresource="status"),
    ),
    "worker": (*_rights("list watch", "pods"), *_rights("list watch", "nodes")),
    "web": (*_rights("list watch", "pods"), *_rights("list watch patch", "nodes")),
}
"""Rights of the whole cluster by role. Those that only matter for Leases are left out."""
LEASES: Final[dict[str, tuple[str, ...]]] = {
    "extender": ("create", "list", "watch"),
    "node-agent": ("create", "patch"),
    "worker": ("list", "watch"),
}
"""Verbs on Leases of our own namespace, by role."""


def account(role: str, namespace: str) -> str:
    """The user's name that the ServiceAccount of a role has."""
    return f"system:serviceaccount:{namespace}:hami-{role}"


def rights_of(role: str, namespace: str) -> tuple[Asked, ...]:
    """All that a role needs."""
    leases = (Asked(verb, "leases", _LEASES, namespace=namespace) for verb in LEASES.get(role, ()))
    return (*RIGHTS[role], *leases)


def lacking(role: str, namespace: str, ask: Answering) -> list[Asked] | None:
    """The rights that a role lacks; None where the API server does not answer all."""
    name = account(role, namespace)
    answers = ask([(name, right) for right in rights_of(role, namespace)])
    if None in answers.values():
        return None
    return [right for (_, right), has in answers.items() if not has]


def worded(rights: Iterable[Asked]) -> str:
    """Rights as text, in their order."""
    return ", ".join(f"{right.verb} {right.shown}" for right in rights)
