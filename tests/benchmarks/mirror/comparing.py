"""Compares a mirror with a cluster, in a process of its own; prints the figures as JSON.

``python -m tests.benchmarks.mirror.comparing KUBECONFIG``: once into an empty mirror, then again
without a change, which is what happens every minute.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")
django.setup()

# isort: split
from django.core.management import call_command  # noqa: E402  # Django must be set up first
from django.db import connection  # noqa: E402

from hami_web.reservations.models import MigReservation  # noqa: E402
from hami_web.sync.reconcile import list_cluster, reconcile  # noqa: E402

_TICKS = os.sysconf("SC_CLK_TCK")


def spent() -> float:
    """Processor seconds of this process and of its database's session."""
    session = connection.connection.info.backend_pid
    fields = Path(f"/proc/{session}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / _TICKS


def measured(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What a call returns, and its processor and wall seconds."""
    cpu, wall = spent(), time.perf_counter()
    found = call()
    return found, {"cpu": spent() - cpu, "wall": time.perf_counter() - wall}


def main() -> None:
    """Migrate, compare twice, and tell."""
    call_command("migrate", verbosity=0)
    kubeconfig = Path(sys.argv[1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def turn() -> int:
        return reconcile(list_cluster(kubeconfig, "hami-system")).corrections

    corrections, first = measured(turn)
    again, second = measured(turn)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert again == 0, again
    figures = {
        "first": first,
        "again": second,
        "kib": peak - before,
        "corrections": corrections,
        "live": MigReservation.objects.filter(released_at=None).count(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
