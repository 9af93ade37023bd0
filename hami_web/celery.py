"""Celery's application: queue, schedule, and nothing else. Start it with ``manage.py worker``."""

from __future__ import annotations

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")  # noqa: TID251

# By name, so that it is loaded only where the queue is one of files.
TRANSPORT_ALIASES["filesystem"] = "hami_web.file_queue:Transport"

app = Celery("hami_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["hami_web.sync"])
