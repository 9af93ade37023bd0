"""WSGI entry point of the extender: one gunicorn worker with threads, no preload.

The cluster's occupancy lives in the worker: it is created here, after the fork, and must exist
once only.
"""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")  # noqa: TID251
django.setup()

from hami_web.extender.handler import build_application  # noqa: E402  # needs django.setup()

application = build_application()
