"""``manage.py check_migration``: ask the worker for a readiness check, follow it, show it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from hami_web.core.errors import InvalidField
from hami_web.migration import runs
from hami_web.migration.models import ENDED, MigrationRun, Readiness, RunState

POLL_S: Final = 0.5
EXIT_NOT_READY: Final = 1
EXIT_ERROR: Final = 2


class Command(BaseCommand):
    """Changes nothing in the cluster. Exit 0: every node is ready; 1: not; 2: it failed."""

    help = "Check whether nodes can be taken over, and say what is in the way."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """How to write, how long to wait."""
        parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
        parser.add_argument("--node", default="", help="look at this node alone")
        parser.add_argument("--timeout", type=float, default=300.0, help="seconds (%(default)s)")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Ask, or join a check that goes on; wait; show."""
        now, node = datetime.now(UTC), options["node"]
        try:
            run = runs.request_check("manage.py check_migration", now, node)
        except InvalidField as error:
            raise CommandError(str(error), returncode=EXIT_ERROR) from error
        except runs.CheckGoesOn as error:
            run = error.run
            if run.node != node:
                raise CommandError(f"{error}; try again", returncode=EXIT_ERROR) from error
        run = self._ended(run, options["timeout"])
        if run.state != RunState.FINISHED:
            raise CommandError(f"check {run.pk}: {run.state} {run.error}", returncode=EXIT_ERROR)
        (self._json if options["output"] == "json" else self._table)(run)
        ready = run.nodes.filter(readiness=Readiness.READY).count()
        if ready < run.nodes.count() or (run.node and not ready):
            sys.exit(EXIT_NOT_READY)

    def _ended(self, run: MigrationRun, timeout_s: float) -> MigrationRun:
        deadline = time.monotonic() + timeout_s
        told = ""
        while run.state not in ENDED:
            if time.monotonic() > deadline:
                text = f"check {run.pk} is {run.state} after {timeout_s:g} s: does a worker run?"
                raise CommandError(text, returncode=EXIT_ERROR)
            shown = f"{run.parts_done}/{run.parts} {run.part}".strip()
            if run.state == RunState.RUNNING and shown != told:
                self.stderr.write(shown)
                told = shown
            time.sleep(POLL_S)
            run.refresh_from_db()
        return run

    def _table(self, run: MigrationRun) -> None:
        for node in run.nodes.all():
            self.stdout.write(f"{node.node}: {node.get_readiness_display()}")
        for item in run.findings.all():
            where = f"{item.node}: " if item.node else ""
            self.stdout.write(
                f"{item.severity} {item.code}: {where}{item.subject}: {item.evidence}"
            )
            self.stdout.write(f"  {item.consequence} {item.mend}")

    def _json(self, run: MigrationRun) -> None:
        names = ("node", "severity", "code", "subject", "evidence", "consequence", "mend")
        answer = {
            "run": run.pk,
            "nodes": {item.node: item.readiness for item in run.nodes.all()},
            "findings": [
                {name: getattr(item, name) for name in names} for item in run.findings.all()
            ],
        }
        self.stdout.write(json.dumps(answer, ensure_ascii=False, indent=2))
