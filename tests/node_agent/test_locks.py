"""One mutation at a time on each GPU, across threads and processes; other GPUs never wait."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from node_agent.errors import GpuLocked
from node_agent.locks import Deadline, GpuLocks

HOLDER = """
import sys
from pathlib import Path
from node_agent.locks import Deadline, GpuLocks
with GpuLocks(Path(sys.argv[1])).hold("GPU-a", Deadline(5)):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_waits_and_gives_up_in_time(tmp_path: Path) -> None:
    locks = GpuLocks(tmp_path)
    with locks.hold("GPU-a", Deadline(1)), pytest.raises(GpuLocked):
        GpuLocks(tmp_path).hold("GPU-a", Deadline(0.05)).__enter__()


def test_another_gpu_does_not_wait(tmp_path: Path) -> None:
    locks = GpuLocks(tmp_path)
    with locks.hold("GPU-a", Deadline(1)), locks.hold("GPU-b", Deadline(0)):
        assert (tmp_path / "GPU-b.lock").exists()


def test_the_lock_holds_against_another_process_until_it_ends(tmp_path: Path) -> None:
    locks = GpuLocks(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(GpuLocked, match="another process"):
            locks.hold("GPU-a", Deadline(0.05)).__enter__()
        other.kill()
        other.wait(5)
    with locks.hold("GPU-a", Deadline(1)):
        assert (tmp_path / "GPU-a.lock").exists()
