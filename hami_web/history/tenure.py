"""Who feeds the mirror: one worker at a time, known to every write.

Two feeds see the same changes at different moments, so one that lags could write an older state
with a newer time. The writer therefore proves in the transaction of each write that it still
holds the feed; whoever lost it writes nothing.
"""

from __future__ import annotations

import os
import socket
import uuid
from datetime import timedelta
from typing import Final

from django.db.models import Q
from django.db.models.functions import Now

from hami_web.history.models import Tenure
from hami_web.inventory.writing import writing

NAME: Final = "mirror-feed"
TENURE: Final = timedelta(seconds=6)
"""A holder that wrote nothing for so long may be followed; it beats every second."""


class TenureLost(Exception):
    """Another worker feeds the mirror; nothing of the transaction is written."""


class FeedTenure:
    """This process's claim to the feed. All times are the database's, so clocks may differ."""

    def __init__(self, holder: str | None = None) -> None:
        self.holder = holder or f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"

    def take(self) -> bool:
        """Take the feed if nobody holds it, or its holder has been silent; True when it is ours."""
        with writing():
            # Created lapsed, so that one rule decides.
            Tenure.objects.get_or_create(name=NAME, defaults={"holder": "", "until": Now()})
            free = Q(holder="") | Q(holder=self.holder) | Q(until__lt=Now())
            return bool(Tenure.objects.filter(free, name=NAME).update(**self._renewed()))

    def confirm(self) -> None:
        """Inside of a write: still ours, and ours for longer. Raises TenureLost."""
        held = Tenure.objects.filter(name=NAME, holder=self.holder)
        if not held.update(**self._renewed()):
            raise TenureLost(self.holder)

    def release(self) -> None:
        """Let another worker follow at once."""
        with writing():
            Tenure.objects.filter(name=NAME, holder=self.holder).update(holder="")

    def _renewed(self) -> dict[str, object]:
        return {"holder": self.holder, "until": Now() + TENURE}
