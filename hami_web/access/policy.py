"""Section ``access`` of the policy file: roles of groups, and namespaces of roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.conf import settings

from hami_web.access.roles import Role, most

ALL: Final = "*"
"""Every namespace, or every group."""
_SECTIONS: Final = ("roleGroups", "namespaces")


class InvalidAccessPolicy(ValueError):
    """The section cannot be read; names the field, the value and what is allowed."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """``groups`` that give a role, and the namespaces that a role sees (None: all) where no
    Kubernetes user is known and the person has no list of their own."""

    groups: Mapping[Role, frozenset[str]] = field(default_factory=dict)
    namespaces: Mapping[Role, frozenset[str] | None] = field(
        default_factory=lambda: {Role.VIEWER: frozenset(), Role.OPERATOR: None, Role.ADMIN: None}
    )

    def role_of(self, groups: Iterable[str]) -> Role | None:
        """The highest role that any of the groups gives; None where none does."""
        held = {*groups, ALL}
        roles = tuple(role for role, named in self.groups.items() if named & held)
        return most(roles) if roles else None


def parse_access_policy(document: object) -> AccessPolicy:
    """Read the section. Raises InvalidAccessPolicy."""
    if not isinstance(document, dict):
        raise InvalidAccessPolicy(f"access: {document!r} is not allowed; allowed: a mapping")
    for name in document:
        if name not in _SECTIONS:
            raise InvalidAccessPolicy(
                f"access.{name}: is not allowed; allowed: {', '.join(_SECTIONS)}"
            )
    groups = _by_role(document, "roleGroups")
    namespaces = {
        role: None if ALL in names else names
        for role, names in _by_role(document, "namespaces").items()
    }
    return AccessPolicy(groups, {**AccessPolicy().namespaces, **namespaces})


def access_policy() -> AccessPolicy:
    """That of the settings, read once."""
    document = settings.ACCESS_POLICY
    if not _read or _read[0] is not document:
        _read[:] = [document, parse_access_policy(document)]
    policy = _read[1]
    assert isinstance(policy, AccessPolicy)  # noqa: S101  # the pair above
    return policy


_read: list[object] = []


def _by_role(document: dict[object, object], section: str) -> dict[Role, frozenset[str]]:
    given = {} if document.get(section) is None else document[section]
    if not isinstance(given, dict):
        raise InvalidAccessPolicy(f"access.{section}: {given!r} is not allowed; allowed: a mapping")
    found: dict[Role, frozenset[str]] = {}
    for role, names in given.items():
        where = f"access.{section}.{role}"
        if role not in list(Role):
            raise InvalidAccessPolicy(f"{where}: is not allowed; allowed: {', '.join(Role)}")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidAccessPolicy(f"{where}: {names!r} is not allowed; allowed: a list of text")
        found[Role(role)] = frozenset(names)
    return found
