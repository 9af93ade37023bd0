"""Celery's application: queue, schedule, and nothing else. Start it with ``manage.py worker``."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")  # noqa: TID251

app = Celery("hami_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["hami_web.sync"])
