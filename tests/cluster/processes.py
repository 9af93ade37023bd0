"""Processes of the suite, and waiting for what they do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(what: str, check: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until ``check`` returns something true; raise with the last answer otherwise."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}; last answer: {answer!r}")
        time.sleep(0.05)


class Process:
    """One process with its children, restartable, its output in a file."""

    def __init__(self, name: str, command: list[str], environ: Mapping[str, str], log: Path):
        self.name = name
        self.log = log
        self._command = command
        self._environ = dict(environ)
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(
                self._command,
                env=os.environ | self._environ,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._popen is None:
            return
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self._popen.pid, how)
        self._popen.wait(30)
        self._popen = None

    @property
    def runs(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def threads(self) -> int:
        if self._popen is None:
            return 0
        return len(list(Path(f"/proc/{self._popen.pid}/task").iterdir()))

    def tail(self, lines: int = 40) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- {self.name}\n" + "\n".join(text.splitlines()[-lines:])


def restart_program(cluster: Path, name: str, *more: str) -> subprocess.Popen[bytes]:
    """Kill a program of a cluster and start it with the same arguments and these beside them.

    ``cluster`` is the folder that the cluster runs from, with a file of its process id.
    """
    file = cluster / "pid" / name
    pid = int(file.read_text())
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")[:-1]
    program = Path(f"/proc/{pid}/exe").readlink()
    os.kill(pid, signal.SIGKILL)
    wait_until(f"{name} has ended", lambda: not _runs(pid))
    with (cluster / "log" / f"{name}.log").open("ab") as output:
        started = subprocess.Popen(
            [*arguments, *map(os.fsencode, more)],
            executable=program,
            env=dict(item.split(b"=", 1) for item in environ),
            cwd=cluster,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    file.write_text(str(started.pid))
    return started


def _runs(pid: int) -> bool:
    """Whether a process works still; one that has ended may wait for its parent to notice."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
