"""The database that a URL names, as Django's settings have it."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

ALLOWED: Final = "sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME"


def parse_database_url(text: str) -> dict[str, object]:
    """Read a database URL; raises ValueError with what is allowed, never with the password.

    A query of a PostgreSQL URL is passed on to libpq (``sslmode``, ``host`` for a socket's folder).
    """
    url = urlsplit(text)
    if url.scheme == "sqlite" and url.path.startswith("/") and not url.netloc:
        return _sqlite(unquote(url.path[1:]))
    if url.scheme in {"postgresql", "postgres"} and len(url.path) > 1:
        try:
            port = url.port
        except ValueError as error:
            raise ValueError(f"the port is not allowed; allowed: {ALLOWED}") from error
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(url.path[1:]),
            "USER": unquote(url.username or ""),
            "PASSWORD": unquote(url.password or ""),
            "HOST": unquote(url.hostname or ""),
            "PORT": "" if port is None else str(port),
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            "OPTIONS": dict(parse_qsl(url.query)),
        }
    raise ValueError(f"scheme {url.scheme!r} or its path is not allowed; allowed: {ALLOWED}")


def _sqlite(path: str) -> dict[str, object]:
    """Readers never wait for the writer (WAL), and a writer waits at its start, not in between."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
