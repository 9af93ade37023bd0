"""Why a request has no caller."""

from __future__ import annotations


class AccessError(Exception):
    """Base of what keeps us from knowing who asks."""


class InvalidCredentials(AccessError):
    """What was sent is wrong, expired or not accepted here; the text names no secret."""


class IdentityUnavailable(AccessError):
    """Whoever could tell (the API server, the database) does not answer now."""


class TooManyFailures(AccessError):
    """This address failed too often; nothing is looked at for ``retry_after_s`` seconds."""

    def __init__(self, retry_after_s: float) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"too many failed attempts; try again in {retry_after_s:.0f} s")
