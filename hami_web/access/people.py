"""From a row of a person to the caller that they are now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.conf import settings

from hami_web.access.caller import Caller, KubernetesUser, Source
from hami_web.access.policy import ALL, access_policy
from hami_web.access.roles import Role

if TYPE_CHECKING:
    # Processes without a database know the policy too.
    from hami_web.access.models import User

RESERVED = "system:"
"""Names that only the API server gives; nobody else's word for them is taken."""

OIDC_PREFIX = "oidc:"
"""Of the names of people whom the OIDC provider knows: they never meet those of local people."""


def caller_of_user(user: User) -> Caller:
    """What a local person or one of the OIDC provider may do and see by today's policy."""
    if user.source == Source.OIDC:
        name = user.username.removeprefix(OIDC_PREFIX)
        return caller_of_groups(name, user.groups, Source.OIDC)
    role = Role(user.role) if user.role else None
    if user.namespaces is not None:
        return Caller(user.username, Source.LOCAL, role, scope_of(user.namespaces))
    return Caller(user.username, Source.LOCAL, role, _scope_of_role(role))


def caller_of_groups(name: str, groups: Iterable[str], source: Source) -> Caller:
    """Someone whom another party knows with their groups: role by group.

    Where the cluster knows the same people by the same names (``HAMI_REVIEWED_SOURCES``) its own
    rules say what they see, else the policy's namespaces of the role.
    """
    held = tuple(group for group in groups if not group.startswith(RESERVED))
    role = access_policy().role_of(held)
    if source not in settings.REVIEWED_SOURCES or name.startswith(RESERVED):
        return Caller(name, source, role, _scope_of_role(role))
    prefix = settings.KUBERNETES_NAME_PREFIX
    user = KubernetesUser(f"{prefix}{name}", tuple(f"{prefix}{group}" for group in held))
    return Caller(name, source, role, None, user)


def caller_of_kubernetes(user: KubernetesUser) -> Caller:
    """Someone whom the API server named: role by group or name, namespaces as the cluster says."""
    role = access_policy().role_of((*user.groups, user.name))
    return Caller(user.name, Source.KUBERNETES, role, None, user)


def scope_of(names: Iterable[str]) -> frozenset[str] | None:
    """A stored list of namespaces; None for all of them."""
    found = frozenset(names)
    return None if ALL in found else found


def _scope_of_role(role: Role | None) -> frozenset[str] | None:
    return frozenset() if role is None else access_policy().namespaces[role]
