"""Real agent processes of one lab, started quickly and killed at a call of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.node_agent.lab import Lab, wait_until

QUIET = {"HAMI_DISCOVERY_SECONDS": "600", "HAMI_RECLAIM_SECONDS": "600"}
ROOT = Path(__file__).parents[2]


class Agents:
    """Agent processes of one lab, forked by a zygote that many labs share."""

    def __init__(self, zygote: subprocess.Popen[str], lab: Lab) -> None:
        self._zygote = zygote
        self._lab = lab
        self.plan = lab.folder / "plan"
        self.log = lab.folder / "agent.log"
        self._pid = 0

    def start(self) -> None:
        lab = self._lab
        environment = lab.environment | QUIET
        environment |= {
            "PATH": os.environ["PATH"],
            "TEST_KILL_PLAN": str(self.plan),
            "TEST_LOG": str(self.log),
            "HAMI_DEVICE_LIST_STRATEGY": "cdi",
            "HAMI_CDI_DIR": str(lab.folder / "cdi"),
        }
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.write(json.dumps(environment) + "\n")
        self._zygote.stdin.flush()
        self._pid = int(self._zygote.stdout.readline())

    def start_and_wait(self) -> None:
        before = len(self._lab.kubelet.registrations)
        self.start()
        kubelet = self._lab.kubelet
        try:
            wait_until(lambda: len(kubelet.registrations) > before, "registered")
            wait_until(lambda: kubelet.capacity and self._lab.lease_holder(), "serves")
        except AssertionError:
            raise AssertionError(f"not ready:\n{self.log.read_text()[-4000:]}") from None

    def arm(self, number: int, when: str, of: str = "calls") -> None:
        """Let the agent die before or after its n-th call, or its n-th call that changes something.

        A number that is never reached only notes the calls.
        """
        draft = self.plan.with_suffix(".draft")
        draft.write_text(json.dumps({"number": number, "when": when, "of": of}))
        draft.replace(self.plan)

    def disarm(self) -> list[str]:
        """Forget the plan; returns the calls that were made under it."""
        self.plan.unlink(missing_ok=True)
        calls = Path(f"{self.plan}.calls")
        made = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return made

    @property
    def alive(self) -> bool:
        try:
            state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    def kill(self) -> None:
        if self._pid and self.alive:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            wait_until(lambda: not self.alive, "killed")


@contextmanager
def open_zygote() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.node_agent.zygote"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
