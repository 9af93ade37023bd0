"""Every problem that the REST API can answer with, in one table.

Codes are stable across releases and languages; titles are translated. Codes of the domain
(``mig.…``) and of the API server (``cluster.…``) are the ones that their own errors carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: its code, the HTTP status, and a short text for people."""

    code: str
    status: int
    title: Promise

    @property
    def type(self) -> str:
        """The identifier that RFC 9457 asks for."""
        return f"urn:hami:problem:{self.code}"


UNREADABLE: Final = Kind("request.invalid", 400, _("The request cannot be read"))
PARAMETER: Final = Kind("request.parameter.invalid", 400, _("A parameter is not allowed"))
BODY: Final = Kind("request.body.invalid", 400, _("A field of the body is not allowed"))
IMPOSSIBLE: Final = Kind("mig.request.invalid", 400, _("No GPU could ever be asked for this"))
UNAUTHENTICATED: Final = Kind("request.unauthenticated", 401, _("It is not known who asks"))
FORBIDDEN: Final = Kind("request.forbidden", 403, _("The caller may not do this"))
NAMESPACE_UNAVAILABLE: Final = Kind(
    "namespace.unavailable", 403, _("What lies in this namespace is unavailable to the caller")
)
NOT_FOUND: Final = Kind("request.not_found", 404, _("There is no such thing"))
METHOD: Final = Kind("request.method_not_allowed", 405, _("The method is not allowed here"))
FORMAT: Final = Kind("request.format_unavailable", 406, _("The format is not available"))
CONFLICT: Final = Kind("request.conflict", 409, _("The state does not allow this now"))
RACE: Final = Kind("cluster.conflict", 409, _("Someone else changed it at the same time"))
PRECONDITION: Final = Kind(
    "request.precondition_failed", 412, _("It is not in the state that the request names")
)
TOO_LARGE: Final = Kind("request.too_large", 413, _("The body is too large"))
MEDIA_TYPE: Final = Kind(
    "request.media_type_unsupported", 415, _("The body's media type is not understood")
)
THROTTLED: Final = Kind("request.throttled", 429, _("Too many requests"))
FAULT: Final = Kind("server.fault", 500, _("A fault of the server"))
CLUSTER_REFUSED: Final = Kind(
    "cluster.rejected", 502, _("The Kubernetes API server refused the change")
)
MIRROR_UNAVAILABLE: Final = Kind("mirror.unavailable", 503, _("The mirror cannot be read now"))
IDENTITY_UNAVAILABLE: Final = Kind(
    "identity.unavailable", 503, _("It cannot be found out now who asks")
)
CLUSTER_UNAVAILABLE: Final = Kind(
    "cluster.unreachable", 503, _("The Kubernetes API server does not answer")
)
OUTCOME_UNCLEAR: Final = Kind(
    "cluster.outcome_unclear", 503, _("It is not known whether the change was made")
)

KINDS: Final = (
    *(UNREADABLE, PARAMETER, BODY, IMPOSSIBLE, UNAUTHENTICATED, FORBIDDEN),
    *(
        NAMESPACE_UNAVAILABLE,
        NOT_FOUND,
        METHOD,
        FORMAT,
        CONFLICT,
        RACE,
        PRECONDITION,
        TOO_LARGE,
        MEDIA_TYPE,
        THROTTLED,
        FAULT,
    ),
    *(CLUSTER_REFUSED, MIRROR_UNAVAILABLE, IDENTITY_UNAVAILABLE, CLUSTER_UNAVAILABLE),
    OUTCOME_UNCLEAR,
)
BY_CODE: Final = {kind.code: kind for kind in KINDS}

BY_STATUS: Final = {
    kind.status: kind
    for kind in (
        *(UNREADABLE, UNAUTHENTICATED, FORBIDDEN, NOT_FOUND, METHOD, FORMAT, CONFLICT),
        *(PRECONDITION, TOO_LARGE, MEDIA_TYPE, THROTTLED, FAULT, MIRROR_UNAVAILABLE),
    )
}
"""The kind of an error that says nothing but its status."""
