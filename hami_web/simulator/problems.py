"""Failures as the API server answers them: a ``Status`` object with code, reason and details."""

from __future__ import annotations

from hami_web.simulator.documents import JsonObject
from hami_web.simulator.resources import Resource


class ApiProblem(Exception):
    """One request fails with this HTTP code, reason and message."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: JsonObject | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> JsonObject:
        """The ``metav1.Status`` that a client receives."""
        document: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details:
            document["details"] = details
        return document


def success(resource: Resource | None = None, name: str = "", uid: str = "") -> JsonObject:
    """The ``Status`` that answers a deletion or a binding."""
    document: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if resource is not None:
        document["details"] = _details(resource, name) | {"uid": uid}
    return document


def not_found(resource: Resource, name: str) -> ApiProblem:
    """404 for a named object."""
    message = f'{resource.label} "{name}" not found'
    return ApiProblem(404, "NotFound", message, details=_details(resource, name))


def no_such_path() -> ApiProblem:
    """404 for a path that the server does not serve."""
    message = "the server could not find the requested resource"
    return ApiProblem(404, "NotFound", message, details={})


def already_exists(resource: Resource, name: str) -> ApiProblem:
    """409 for a create with a name in use."""
    message = f'{resource.label} "{name}" already exists'
    return ApiProblem(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: Resource, name: str, why: str, *, subresource: str = "") -> ApiProblem:
    """409 for a write whose precondition no longer holds."""
    subject = f"{resource.plural}/{subresource}" if subresource else resource.label
    message = f'Operation cannot be fulfilled on {subject} "{name}": {why}'
    return ApiProblem(409, "Conflict", message, details=_details(resource, name))


STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def invalid(kind: str, name: str, causes: list[tuple[str, str]]) -> ApiProblem:
    """422 with one cause, (field path, text), for each thing wrong."""
    texts = [f"{field}: {text}" for field, text in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {
        "name": name,
        "kind": kind,
        "causes": [
            {"reason": "FieldValueInvalid", "message": text, "field": field}
            for field, text in causes
        ],
    }
    return ApiProblem(422, "Invalid", f'{kind} "{name}" is invalid: {joined}', details=details)


def bad_request(message: str) -> ApiProblem:
    """400 for what cannot be understood."""
    return ApiProblem(400, "BadRequest", message)


def forbidden(resource: Resource, name: str, why: str) -> ApiProblem:
    """403 from authorization or a built-in admission rule."""
    subject = f'{resource.label} "{name}"' if name else resource.label
    message = f"{subject} is forbidden: {why}"
    return ApiProblem(403, "Forbidden", message, details=_details(resource, name))


def unauthorized() -> ApiProblem:
    """401 for a missing or unknown token."""
    return ApiProblem(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiProblem:
    """410: a resourceVersion or continue token is older than the history kept."""
    return ApiProblem(410, "Expired", message)


def method_not_allowed() -> ApiProblem:
    """405 for a verb that the resource does not have."""
    message = "the server does not allow this method on the requested resource"
    return ApiProblem(405, "MethodNotAllowed", message, details={})


def unsupported_media_type(found: str, accepted: str) -> ApiProblem:
    """415 for a body in a format that is not understood."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {accepted} (found {found or 'none'})"
    )
    return ApiProblem(415, "UnsupportedMediaType", message)


def too_many_requests(message: str, *, details: JsonObject | None = None) -> ApiProblem:
    """429: a disruption budget or a rate limit says not now."""
    return ApiProblem(429, "TooManyRequests", message, details=details)


def _details(resource: Resource, name: str) -> JsonObject:
    details: JsonObject = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return details
