"""Whether the queue of tasks can be used: a folder that is written, or a Redis that answers."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from django.conf import settings
from kombu.exceptions import OperationalError

from hami_web.celery import app
from hami_web.core.faults import Fault, line
from hami_web.standing import Standing

CONNECT_S = 3


def watch_queue() -> Standing:
    """A watch that is to be started."""
    in_files = settings.CELERY_BROKER_URL == "filesystem://"
    return Standing("the queue", _folder_problem if in_files else _broker_problem)


def tell_without_traces() -> None:
    """Celery tells of a queue that broke away under a task: in a line, as everyone here."""
    with app.connection_for_write() as broker:
        away = tuple(broker.connection_errors)

    def without(record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], away):
            record.exc_info = None
        return True

    for name in ("celery.worker.request", "celery.worker.consumer.consumer", "celery.beat"):
        logging.getLogger(name).addFilter(without)


def _folder_problem() -> str:
    """Make the folders where there are none."""
    folder = Path(settings.BROKER_DIR)
    try:
        (folder / "control").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return line(Fault.VOLUME, f"{folder}: {error.strerror}")
    if not os.access(folder, os.W_OK):
        return line(Fault.VOLUME, f"{folder}: it cannot be written")
    return ""


def _broker_problem() -> str:
    """Connect and ask, as a consumer would; the URL is told without its password."""
    with app.connection_for_write() as broker:
        try:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=CONNECT_S)
        except (OperationalError, OSError) as error:
            return line(Fault.QUEUE, f"HAMI_BROKER_URL: {broker.as_uri()}: {error}")
    return ""
