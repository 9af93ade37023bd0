"""Starts real agent processes quickly, and kills them with SIGKILL at any of their calls.

``python -m tests.node_agent.zygote`` imports the agent once and forks for each line of its input,
a JSON object of environment variables; it answers with the process id. A child looks for the file
``TEST_KILL_PLAN``: from the moment it exists, every call of NVML, every request to the API server
and every write of a state file is numbered and noted in ``<plan>.calls``; the call that the plan
names (``{"number": 7, "when": "before", "of": "calls"}``) is the process's last moment. Those that
change something outside of the process are numbered apart (``"of": "changes"``).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import node_agent.bootstrap
import node_agent.cdi
import node_agent.journal
from node_agent.cluster import Cluster
from node_agent.nvml.simulated.library import SimulatedLibrary

CHANGES = ("Create", "Destroy", "SetMigMode", "PATCH ", "POST ", "DELETE ", "write ")
"""How the names of calls look that change hardware, API server or files; all others read."""
# Threads that follow the hardware and the Lease call all the time; they are no steps of the work.
BACKGROUND = ("gpu-errors", "lease", "pod-events", "health")


class Plan:
    """Counts calls from the moment the plan's file exists."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._text: dict[str, Any] | None = None
        self._made = {"calls": 0, "changes": 0}

    def around(self, name: str, call: Callable[..., Any], *arguments: Any) -> Any:
        if threading.current_thread().name in BACKGROUND or not self._armed():
            return call(*arguments)
        with self._lock:
            self._made["calls"] += 1
            self._made["changes"] += is_change(name)
            made = dict(self._made)
            with Path(f"{self._path}.calls").open("a") as log:
                log.write(f"{name}\n")
        self._die(name, made, "before")
        try:
            return call(*arguments)
        finally:
            self._die(name, made, "after")

    def _armed(self) -> bool:
        if self._text is None and self._path.exists():
            self._text = json.loads(self._path.read_text())
        return self._text is not None

    def _die(self, name: str, made: dict[str, int], when: str) -> None:
        plan = self._text
        if plan is None or (made[plan["of"]], when) != (plan["number"], plan["when"]):
            return
        if plan["of"] == "calls" or is_change(name):
            os.kill(os.getpid(), signal.SIGKILL)


def is_change(name: str) -> bool:
    """True for a call that leaves something behind when its process dies right after it."""
    return any(word in name for word in CHANGES)


def install(plan: Plan) -> None:
    call_library = SimulatedLibrary._call
    request = Cluster._request
    write = node_agent.journal.write_durably

    def library(self: SimulatedLibrary, symbol: Any, arguments: Any) -> Any:
        return plan.around(symbol.name, call_library, self, symbol, arguments)

    def cluster(self: Cluster, method: str, path: str, *rest: Any) -> Any:
        return plan.around(f"{method} {path}", request, self, method, path, *rest)

    def durably(path: Path, text: str) -> None:
        plan.around(f"write {path.name}", write, path, text)

    SimulatedLibrary._call = library  # type: ignore[method-assign]
    Cluster._request = cluster  # type: ignore[method-assign]
    node_agent.journal.write_durably = durably
    node_agent.cdi.write_durably = durably


def child(environment: dict[str, str]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    log = os.open(environment["TEST_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, nothing), (1, nothing), (2, log)):
        os.dup2(source, target)
    install(Plan(Path(environment["TEST_KILL_PLAN"])))
    os._exit(node_agent.bootstrap.main())


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(json.loads(line))
        print(pid, flush=True)


if __name__ == "__main__":
    main()
