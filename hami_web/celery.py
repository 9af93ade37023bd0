"""Celery's application: queue, schedule, and nothing else. Start it with ``manage.py worker``."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, Task
from kombu.transport import TRANSPORT_ALIASES

from hami_web.core.log_lines import about
from hami_web.core.tracing import span

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")  # noqa: TID251

# By name, so that it is loaded only where the queue is one of files.
TRANSPORT_ALIASES["filesystem"] = "hami_web.file_queue:Transport"


class ToldTask(Task):  # type: ignore[type-arg]
    """A task whose lines carry its name, and its own id as that of the request."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        with about(request_id=self.request.id or "", task=self.name), span(self.name):
            return super().__call__(*args, **kwargs)


app = Celery("hami_web", task_cls="hami_web.celery:ToldTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["hami_web.sync"])
