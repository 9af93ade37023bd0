"""Counts what becomes of the worker's tasks, from Celery's signals, in the database."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from typing import Any, Final

from celery.signals import task_postrun, task_prerun
from django.db import DatabaseError

from hami_web.cluster.errors import ClusterError
from hami_web.core.trouble import Trouble
from hami_web.history import tallies
from hami_web.scheduling.measures import BUCKETS_S

logger = logging.getLogger(__name__)

TASKS: Final = "tasks"
"""Tallies by outcome and task."""
SECONDS: Final = "task seconds"
"""Tallies by task and bucket (its index in BUCKETS_S), and ``sum``."""
SUM: Final = "sum"
SUCCEEDED_AT: Final = "task succeeded at"
"""Unix time by task."""
SKIPPED: Final = "reconciliations skipped"
"""Tallies by reason."""
RECONCILE: Final = "reconcile"
PREFIX: Final = "hami."

_lock = threading.Lock()
_began: dict[str, float] = {}
_trouble: Final = Trouble(logger, "a task was not counted: %s")


def begin(task_id: str, **_more: Any) -> None:
    """A task starts."""
    with _lock:
        _began[task_id] = time.monotonic()


def end(task_id: str, task: Any, state: str, retval: Any = None, **_more: Any) -> None:
    """A task ended: count it; what cannot be counted is lost."""
    with _lock:
        began = _began.pop(task_id, None)
    if began is None or not task.name.startswith(PREFIX):
        return
    seconds = time.monotonic() - began
    name = task.name.removeprefix(PREFIX)
    succeeded = state == "SUCCESS"
    amounts: dict[tallies.Key, float] = {
        (TASKS, "succeeded" if succeeded else "failed", name): 1,
        (SECONDS, name, str(bisect_left(BUCKETS_S, seconds))): 1,
        (SECONDS, name, SUM): seconds,
    }
    if name == RECONCILE and not succeeded:
        amounts[SKIPPED, reason_of(retval)] = 1
    try:
        tallies.add(amounts)
        if succeeded:
            tallies.keep_latest((SUCCEEDED_AT, name), time.time())
    except DatabaseError as error:
        _trouble.tell(error)
    else:
        _trouble.over()


def reason_of(error: object) -> str:
    """Why a reconciliation did not happen, in a word."""
    if isinstance(error, ClusterError):
        return "cluster"
    return "database" if isinstance(error, DatabaseError) else "fault"


def connect() -> None:
    """Listen to Celery in this process; again changes nothing."""
    task_prerun.connect(begin, dispatch_uid="hami-measuring")
    task_postrun.connect(end, dispatch_uid="hami-measuring")
