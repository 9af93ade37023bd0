"""Measures one mirror, in a process of its own; prints the figures as JSON.

Costs are processor seconds, of this process and of its database session together: so they mean the
same on a busy machine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")
django.setup()

# isort: split
from django.core.handlers.base import BaseHandler  # noqa: E402  # Django must be set up first
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.http.response import HttpResponseBase  # noqa: E402
from django.test import RequestFactory  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402

from hami_web.access.audit import SYSTEM  # noqa: E402
from hami_web.access.models import ApiToken  # noqa: E402
from hami_web.access.roles import Role  # noqa: E402
from hami_web.access.tokens import TokenGrant, create_token  # noqa: E402
from tests.benchmarks.mirror.rows import fill  # noqa: E402

PAGES: Final = {
    "live": "/api/v1/reservations?live=true&limit=500",
    "all": "/api/v1/reservations?limit=500",
    "of-a-namespace": "/api/v1/reservations?namespace=team-3&limit=500",
    "gpus": "/api/v1/gpus?limit=500",
    "of-50": "/api/v1/reservations",
}
MAP: Final = "/api/v1/map"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Answers:
    """The web role's handler, all middleware included, called without a socket."""

    def __init__(self) -> None:
        ApiToken.objects.filter(name="benchmark").delete()
        token = create_token("benchmark", TokenGrant(Role.ADMIN), by=SYSTEM)
        self._requests = RequestFactory(
            headers={"host": "localhost", "authorization": f"Bearer {token}"}
        )
        self._handler = BaseHandler()
        self._handler.load_middleware()

    def get(self, path: str) -> HttpResponseBase:
        """An answer, which must be 200."""
        answer = self._handler.get_response(self._requests.get(path))
        assert answer.status_code == 200, (path, answer.status_code)
        return answer


def cost(call: Callable[[], object], times: int) -> float:
    """Processor seconds of one call, here and in the database's session."""
    call()
    before = _spent()
    for _ in range(times):
        call()
    return (_spent() - before) / times


def _spent() -> float:
    session = connection.connection.info.backend_pid
    fields = Path(f"/proc/{session}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / _TICKS


def pages(answers: Answers, times: int) -> dict[str, Any]:
    """For each page what it costs, and what its rows cost by bare SQL."""
    found = {}
    for name, path in PAGES.items():
        with CaptureQueriesContext(connection) as captured:
            answers.get(path)
        texts = [query["sql"] for query in captured.captured_queries]
        rows = [text for text in texts if text.startswith("SELECT") and "token" not in text]

        def bare(rows: list[str] = rows) -> None:
            for text in rows:
                with connection.connection.cursor() as cursor:
                    cursor.execute(text)
                    cursor.fetchall()

        repeats = times * 5 if name == "of-50" else times
        found[name] = {
            "page": cost(lambda path=path: answers.get(path), repeats),
            "sql": cost(bare, repeats),
            "queries": len(texts),
        }
    return found


def cluster_map(answers: Answers, times: int) -> dict[str, float]:
    """The whole map, and the encoding of the same document by the standard library."""
    document = json.loads(answers.get(MAP).content)  # type: ignore[attr-defined]
    return {
        "page": cost(lambda: answers.get(MAP), times),
        "json": cost(lambda: json.dumps(document), times),
        "bytes": float(len(json.dumps(document))),
    }


def main() -> None:
    """``fill ROWS`` makes the mirror, ``measure TIMES`` measures it."""
    what, number = sys.argv[1], int(sys.argv[2])
    if what == "fill":
        call_command("migrate", verbosity=0)
        fill(number)
        return
    answers = Answers()
    result = {"pages": pages(answers, number), "map": cluster_map(answers, number)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
