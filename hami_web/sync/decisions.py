"""Reads the extender's decisions from a cursor into the mirror.

The extender waits for nobody: what leaves its memory unread is lost, and told as such. The cursor
is stored with the rows that it covers, so that whoever is killed here counts nothing twice.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
import urllib3
from django.db import DatabaseError, close_old_connections, connection

from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation
from hami_web.history.decisions import SeenDecision, note_decisions
from hami_web.history.models import Feed
from hami_web.history.vitals import PULSE_S, note_extender
from hami_web.inventory.writing import writing
from hami_web.reservations.holds import ObservedHold, lapse_holds, note_holds
from hami_web.scheduling.decision_log import Decision, DecisionPage, Outcome

logger = logging.getLogger(__name__)

FEED: Final = "decisions"
POLL_S: Final = 0.5
RETRY_S: Final = 3.0
"""After an extender or a database that does not answer."""
LIMIT: Final = 200
TIMEOUT_S: Final = 5.0
LAPSE_EVERY: Final = timedelta(seconds=5)
SLACK: Final = timedelta(seconds=30)
"""Between the clocks of extender and worker, and for a Binding on its way."""
NOTHING: Final = b"null"


class ExtenderUnavailable(Exception):
    """The extender does not answer, or says something else than decisions."""


@dataclass(frozen=True, slots=True)
class ExtenderAddress:
    """Where the extender that leads answers; ``ca`` is the file of its certificate's issuer."""

    url: str
    ca: Path | None = None


class DecisionClient:
    """Calls ``/decisions`` of the extender."""

    def __init__(self, address: ExtenderAddress) -> None:
        self._url = f"{address.url.rstrip('/')}/decisions"
        trusted = None if address.ca is None else str(address.ca)
        self._pool = urllib3.PoolManager(maxsize=1, ca_certs=trusted)
        self._decoder = msgspec.json.Decoder(DecisionPage)

    def since(self, cursor: str) -> DecisionPage:
        """What was decided since; raises ExtenderUnavailable."""
        try:
            answer = self._pool.request(
                "GET",
                self._url,
                fields={"limit": str(LIMIT), **({"since": cursor} if cursor else {})},
                timeout=TIMEOUT_S,
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ExtenderUnavailable(f"{self._url}: {error}") from error
        if answer.status != 200:
            raise ExtenderUnavailable(f"{self._url}: {answer.status} {answer.data[:200]!r}")
        try:
            return self._decoder.decode(answer.data)
        except msgspec.MsgspecError as error:
            raise ExtenderUnavailable(f"{self._url}: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._pool.clear()


class DecisionReader:
    """A thread that keeps the mirror as far as the extender's log; a hold lives ``hold_s``."""

    def __init__(self, client: DecisionClient, *, hold_s: float, poll_s: float = POLL_S) -> None:
        self._client = client
        self._hold = timedelta(seconds=hold_s) + SLACK
        self._poll_s = poll_s
        self._looked_at = self._heard_at = datetime.min.replace(tzinfo=UTC)
        self._trouble = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decisions", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(2 * TIMEOUT_S)
        self._client.close()

    def turn(self) -> bool:
        """Read and write one page; True when there is more. Raises what failed."""
        cursor = Feed.objects.filter(name=FEED).values_list("cursor", flat=True).first() or ""
        page = self._client.since(cursor)
        now = datetime.now(UTC)
        if page.cursor != cursor or page.reset:
            write_page(page, now=now)
        if now - self._heard_at > timedelta(seconds=PULSE_S):
            self._heard_at = now
            note_extender(now)
        if now - self._looked_at > LAPSE_EVERY:
            self._looked_at = now
            with writing():
                lapse_holds(before=now - self._hold, at=now)
        return page.more

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopped.wait(pause_s):
            try:
                close_old_connections()
                pause_s = 0.0 if self.turn() else self._poll_s
                self._trouble = ""
            except (ExtenderUnavailable, DatabaseError) as error:
                self._tell(str(error))
                pause_s = RETRY_S
            except Exception:
                logger.exception("reading the extender's decisions; again soon")
                pause_s = RETRY_S
        connection.close()

    def _tell(self, trouble: str) -> None:
        """Log a trouble once, not with every try."""
        if trouble != self._trouble:
            logger.warning("decisions cannot be read or kept: %s; again soon", trouble)
        self._trouble = trouble


def write_page(page: DecisionPage, *, now: datetime) -> None:
    """Write a page and its cursor, both or neither."""
    if page.reset:
        logger.warning("decisions were lost: the extender restarted, or forgot them unread")
    with writing():
        if page.reset:
            # Another process holds nothing of what the one before held.
            lapse_holds(before=now, at=now)
        note_decisions([_seen(item) for item in page.decisions])
        note_holds(list(_holds(page)))
        facts = {"cursor": page.cursor, "caught_up_at": now}
        Feed.objects.update_or_create(name=FEED, defaults=facts)


def _seen(item: Decision) -> SeenDecision:
    explanation = bytes(item.explanation)
    return SeenDecision(
        entry=item.id,
        outcome=item.outcome.value,
        uid=item.pod.uid,
        namespace=item.pod.namespace,
        name=item.pod.name,
        message=item.message,
        first_at=_moment(item.first),
        last_at=_moment(item.last),
        times=item.count,
        node=item.node or "",
        code=item.code or "",
        explanation=b"" if explanation == NOTHING else explanation,
    )


def _holds(page: DecisionPage) -> Iterator[ObservedHold]:
    """Holds that began or ended; a Binding is seen on the Pod itself."""
    for item in page.decisions:
        if item.outcome is not Outcome.BOUND:
            devices = tuple(
                Reservation(
                    held.container_index,
                    held.device_index,
                    held.gpu_uuid,
                    held.profile,
                    Placement(held.start, held.size),
                )
                for held in item.held
            )
            pod = item.pod
            at = _moment(item.last)
            yield ObservedHold(pod.uid, pod.namespace, pod.name, item.node or "", devices, at)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
