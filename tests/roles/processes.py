"""Roles of the control plane as processes: what they say, answer, and end with."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
WITHIN_S = 40.0


class Role:
    """One process, started at once; its lines go into a file."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *command: str) -> None:
        self._log = folder / f"{'-'.join(command)[-40:].replace('/', '-')}.log"
        self.probe = ""
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
                stdout=log,
                stderr=log,
                cwd=folder,
            )

    @property
    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()

    def ended(self) -> int:
        return self.process.wait(WITHIN_S)

    def answers(self, path: str) -> tuple[int, str]:
        """Status and text; 0 while nobody answers."""
        trusting = ssl._create_unverified_context()  # as the kubelet's probes
        try:
            with urllib.request.urlopen(
                f"{self.probe}{path}", timeout=10, context=trusting
            ) as found:
                return found.status, found.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def until(self, expected: str) -> None:
        """Wait until ``/readyz`` answers ``ok``, or 503 with what is expected."""
        status = 200 if expected == "ok" else 503
        soon(
            lambda: (found := self.answers("/readyz"))[0] == status and expected in found[1],
            lambda: f"{expected}: {self.answers('/readyz')}\n" + "\n".join(self.lines[-30:]),
        )
        assert self.process.poll() is None

    def said(self, fault: str) -> int:
        """How many lines begin a fault's text."""
        return sum(f"{fault}: " in line for line in self.lines)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)


def manage(folder: Path, environment: Mapping[str, str], *command: str) -> Role:
    defaults = {"DJANGO_SETTINGS_MODULE": "hami_web.settings", "HAMI_DATA_DIR": str(folder)}
    return Role(folder, defaults | environment, str(ROOT / "manage.py"), *command)


def soon(look: Callable[[], object], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not look():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def needs(program: str) -> bool:
    return shutil.which(program) is None
