"""What an API call can end in, each with a stable code.

``outcome_unclear`` tells a writer whether the write may have happened all the same: then only a
read settles it. Nothing here is a :class:`~hami_web.core.errors.CoreError`: these are faults of
the moment, not of a request.
"""

from __future__ import annotations

from typing import ClassVar


class ClusterError(Exception):
    """Base of all failures of an API call; ``status`` is the HTTP status, 0 without an answer."""

    code: ClassVar[str] = "cluster.error"
    outcome_unclear: ClassVar[bool] = False

    def __init__(self, text: str, status: int = 0) -> None:
        self.status = status
        super().__init__(text)


class InvalidConfiguration(ClusterError):
    """No usable kubeconfig or ServiceAccount."""

    code = "cluster.configuration.invalid"


class Unauthorized(ClusterError):
    """401: the API server does not know us."""

    code = "cluster.unauthorized"


class Forbidden(ClusterError):
    """403: RBAC or an admission plugin says no."""

    code = "cluster.forbidden"


class NotFound(ClusterError):
    """404: the object is gone."""

    code = "cluster.not_found"


class Conflict(ClusterError):
    """409: another writer was first, or the UID is another object's."""

    code = "cluster.conflict"


class Expired(ClusterError):
    """410: the resource version or continue token is too old; list again."""

    code = "cluster.expired"


class Rejected(ClusterError):
    """Any other 4xx: the API server does not accept what we sent."""

    code = "cluster.rejected"


class TooManyRequests(ClusterError):
    """429: not executed; try again after ``retry_after_s`` seconds."""

    code = "cluster.too_many_requests"

    def __init__(self, text: str, status: int = 429, retry_after_s: float = 1.0) -> None:
        super().__init__(text, status)
        self.retry_after_s = retry_after_s


class Unreachable(ClusterError):
    """No connection: nothing was sent."""

    code = "cluster.unreachable"


class Superseded(ClusterError):
    """Not sent: this process does not lead any more, and another may have decided since."""

    code = "cluster.superseded"


class ServerFailed(ClusterError):
    """5xx: the API server may have written before it failed (an etcd timeout is a 500)."""

    code = "cluster.server_failed"
    outcome_unclear = True


class OutcomeUnclear(ClusterError):
    """The connection broke or timed out after the request was sent."""

    code = "cluster.outcome_unclear"
    outcome_unclear = True


class MalformedAnswer(ClusterError):
    """A 2xx whose body cannot be read; a write did happen."""

    code = "cluster.answer_malformed"
    outcome_unclear = True


_BY_STATUS: dict[int, type[ClusterError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
}


def error_of(status: int, text: str, retry_after: str | None = None) -> ClusterError:
    """Build the error of an HTTP status; ``retry_after`` is the header's value in seconds."""
    if status == 429:
        return TooManyRequests(text, status, _seconds(retry_after))
    if status in _BY_STATUS:
        return _BY_STATUS[status](text, status)
    return ServerFailed(text, status) if status >= 500 else Rejected(text, status)


def _seconds(value: str | None) -> float:
    """Read a Retry-After in seconds, bounded; the date form is not used by Kubernetes."""
    if value is None or not (value.isascii() and value.isdigit()):
        return 1.0
    return float(min(int(value), 60))
