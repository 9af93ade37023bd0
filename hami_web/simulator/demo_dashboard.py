"""The demo's dashboard as its readers have it: pages and REST API over HTTP."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class DemoDashboard:
    """``url`` ends with a slash. What cannot be read now is read as nothing."""

    url: str

    def page(self, path: str) -> str:
        """A page's HTML; empty while it does not answer."""
        return self._get(path).decode(errors="replace")

    def document(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """An answer of the REST API; empty while it does not answer."""
        text = self._get(f"api/v1/{path}?{urllib.parse.urlencode(query)}")
        document: dict[str, Any] = json.loads(text) if text else {}
        return document

    def rows(self, path: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Rows of the REST API; none while it does not answer."""
        rows: list[dict[str, Any]] = self.document(path, query).get("results", [])
        return rows

    @property
    def answers(self) -> bool:
        """Whether it is ready."""
        return answers(f"{self.url}readyz")

    @property
    def follows(self) -> bool:
        """Whether the mirror behind it follows the cluster."""
        return any(row["part"] == "feed" and row["at"] for row in self.rows("worker", {}))

    def _get(self, path: str) -> bytes:
        try:
            with urllib.request.urlopen(self.url + path, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - loopback, http
                text: bytes = answer.read()
        except (urllib.error.URLError, OSError, http.client.HTTPException):
            return b""
        return text


def answers(url: str) -> bool:
    """Whether a server says at an address that it is ready."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - loopback, http
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, http.client.HTTPException):
        return False
