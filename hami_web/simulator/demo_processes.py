"""The demo's child processes: real programs of the product, each with its log in a file."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
STOP_S: Final = 10.0
"""How long a child may take to stop before it is killed."""
_TAIL_LINES: Final = 15
_INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV", "PYTHONPATH", "TMPDIR")


class DemoError(Exception):
    """The demo cannot go on; the text says why and what to do."""


@dataclass(slots=True)
class Child:
    """One running program."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


@dataclass(slots=True)
class Children:
    """Starts programs that die with this process, and stops them in reverse order.

    Use it on the main thread only: the kernel's parent is the thread that starts a child.
    """

    log_dir: Path
    _running: dict[str, Child] = field(default_factory=dict)

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Child:
        """Start ``python ARGUMENTS`` with these variables beside a few inherited ones."""
        log = self.log_dir / f"{name}.log"
        inherited = {key: os.environ[key] for key in _INHERITED if key in os.environ}
        guard = [sys.executable, "-m", "hami_web.simulator.demo_child", str(os.getpid())]
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*guard, sys.executable, *arguments],
                env={**inherited, "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        child = self._running[name] = Child(name, process, log)
        return child

    def kill(self, name: str) -> None:
        """End a program without a chance to clean up, as ``kill -9`` does."""
        _kill(self._running.pop(name))

    def check(self) -> None:
        """Raise :class:`DemoError` with its log when a program ended by itself."""
        for child in self._running.values():
            if not child.is_running:
                code = child.process.returncode
                raise DemoError(f"{child.name} ended with status {code}; its log:\n{child.tail()}")

    def tails(self) -> str:
        """The last lines of every log."""
        return "\n".join(f"[{child.name}]\n{child.tail()}" for child in self._running.values())

    def stop(self) -> None:
        """SIGTERM to each, newest first; whoever does not obey in time is killed."""
        children = list(reversed(self._running.values()))
        for child in children:
            child.process.terminate()
        deadline = time.monotonic() + STOP_S
        for child in children:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _kill(child)
        self._running.clear()


def _kill(child: Child) -> None:
    child.process.kill()
    child.process.wait()


def choose_port(wanted: int, option: str) -> int:
    """A port that is free on loopback now: the wanted one, or any for 0.

    Raises :class:`DemoError` naming the option that chooses another.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except (OSError, OverflowError) as error:
            raise DemoError(
                f"port {wanted} on {LOOPBACK} cannot be used ({error}); "
                f"stop what uses it or choose another with {option} (0: any free one)"
            ) from error
        return int(probe.getsockname()[1])
