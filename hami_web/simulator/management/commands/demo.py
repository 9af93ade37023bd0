"""``manage.py demo``: the product on a simulated cluster, without Kubernetes and without a GPU."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hami_web.simulator.demo_check import run_check
from hami_web.simulator.demo_cluster import DemoCluster, DemoPorts
from hami_web.simulator.demo_pace import Pace
from hami_web.simulator.demo_plan import CHECK_NODES, SHOW_CAST, SHOW_NODES
from hami_web.simulator.demo_processes import DemoError
from hami_web.simulator.demo_story import Story

STOPPED = 0
FAILED = 1


class Stopped(BaseException):
    """Ctrl-C or SIGTERM."""


class Command(BaseCommand):
    """Starts everything under one temporary folder and leaves nothing behind."""

    help = (
        "Run the extender, real node agents and the dashboard on a simulated cluster, and play a "
        "story on it until Ctrl-C. With --check: play a fixed story, observe every step, exit."
    )
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Ports are on loopback; 0 takes a free one."""
        parser.add_argument("--check", action="store_true", help="fixed story, then exit")
        parser.add_argument("--port", type=int, default=8000, help="the page (default %(default)s)")
        parser.add_argument("--api-port", type=int, default=0, help="the simulated API server")
        parser.add_argument("--extender-port", type=int, default=0, help="the extender")
        parser.add_argument(
            "--pause", type=float, default=1.0, help="seconds between events (default %(default)s)"
        )
        parser.add_argument("--rounds", type=int, default=0, help="end after so many; 0: never")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Run until the story ends or a signal comes; exits 0, or 1 when something failed."""
        self._began = time.monotonic()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
        ports = DemoPorts(
            api=options["api_port"],
            extender=options["extender_port"],
            web=0 if options["check"] else options["port"],
        )
        try:
            with tempfile.TemporaryDirectory(prefix="hami-demo-") as folder:
                status = self._run(Path(folder), ports, options)
        except Stopped:
            status = STOPPED
        except DemoError as error:
            raise CommandError(str(error)) from error
        if status:
            sys.exit(status)

    def _run(self, folder: Path, ports: DemoPorts, options: dict[str, Any]) -> int:
        cluster = DemoCluster(folder, CHECK_NODES if options["check"] else SHOW_NODES)
        try:
            cluster.start(ports, self._tell)
            if options["check"]:
                return STOPPED if run_check(cluster, self._tell) else FAILED
            self._tell(f"The dashboard is at {cluster.dashboard.url} - leave with Ctrl-C.")
            pace = Pace(cluster.board, options["pause"], cluster.check)
            story = Story(cluster, SHOW_CAST, pace, self._tell)
            while not options["rounds"] or story.round < options["rounds"]:
                story.play_round()
            return STOPPED
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            with contextlib.suppress(Stopped):
                self._tell("Stopping everything.")
            cluster.stop()
            with contextlib.suppress(Stopped):
                self._tell("Stopped; nothing is left behind.")

    def _tell(self, text: str) -> None:
        after_s = time.monotonic() - self._began
        try:
            self.stdout.write(f"{after_s:6.1f} s  {text}")
            self.stdout.flush()
        except BrokenPipeError:
            # Nobody reads any more, for example behind ``| head``.
            raise Stopped from None


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped
