"""Roles, verbs, and the one table of who may do what."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a caller is here; each may do all that those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """Position among the roles, from 0."""
        return _RANKS[self]

    def may(self, verb: Verb) -> bool:
        """Whether the table allows it."""
        return self.rank >= LEAST_ROLES[verb].rank


class Verb(StrEnum):
    """What can be done; every address declares the verb that it needs."""

    READ = "read"
    WHAT_IF = "what-if"
    PLAN_DRAIN = "plan-drain"
    ACKNOWLEDGE = "acknowledge"
    CHECK = "check"
    CORDON = "cordon"
    HAND_OVER = "hand-over"
    READ_AUDIT = "read-audit"
    MANAGE_ACCESS = "manage-access"


_RANKS: Final = {role: rank for rank, role in enumerate(Role)}

LEAST_ROLES: Final[dict[Verb, Role]] = {
    Verb.READ: Role.VIEWER,
    Verb.WHAT_IF: Role.VIEWER,
    Verb.PLAN_DRAIN: Role.VIEWER,
    Verb.ACKNOWLEDGE: Role.OPERATOR,
    Verb.CHECK: Role.OPERATOR,
    Verb.CORDON: Role.OPERATOR,
    Verb.HAND_OVER: Role.ADMIN,
    Verb.READ_AUDIT: Role.ADMIN,
    Verb.MANAGE_ACCESS: Role.ADMIN,
}
"""The least role that may do it."""


def least(roles: tuple[Role, ...]) -> Role:
    """The one of them that may do the least."""
    return min(roles, key=lambda role: role.rank)


def most(roles: tuple[Role, ...]) -> Role:
    """The one of them that may do the most."""
    return max(roles, key=lambda role: role.rank)
