"""Who sent a request, as values: no models, no framework."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hami_web.access.roles import Role, Verb


class Source(StrEnum):
    """How we know who it is."""

    LOCAL = "local"
    OIDC = "oidc"
    PROXY = "proxy"
    KUBERNETES = "kubernetes"
    TOKEN = "token"  # noqa: S105  # no secret
    ANONYMOUS = "anonymous"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class KubernetesUser:
    """A user as the API server names them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """A person or program with a role; None as role: known, but nothing is granted.

    ``namespaces`` are those that may be seen, None for all. ``reviewed`` is whom the cluster's own
    rules are asked about beside that; None where no Kubernetes user is known.
    """

    name: str
    source: Source
    role: Role | None
    namespaces: frozenset[str] | None = frozenset()
    reviewed: KubernetesUser | None = None

    def may(self, verb: Verb) -> bool:
        """Whether the role allows it."""
        return self.role is not None and self.role.may(verb)

    @property
    def is_anonymous(self) -> bool:
        """Nobody signed in."""
        return self.source is Source.ANONYMOUS

    @property
    def has_session(self) -> bool:
        """Whether there is something to sign out of."""
        return self.source in (Source.LOCAL, Source.OIDC, Source.KUBERNETES)

    @property
    def key(self) -> str:
        """One text per caller, for limits."""
        return f"{self.source}:{self.name}"
