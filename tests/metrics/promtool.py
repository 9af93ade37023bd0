"""What promtool finds wrong with text that a process serves at ``/metrics``."""

from __future__ import annotations

import shutil
import subprocess

import pytest

HAMI_COMPLAINTS = frozenset({"hami_gpu_shared_count"})
"""Of HAMi's names: promtool wants _count to be a histogram's or summary's alone."""

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool: apt-get install prometheus"
)


def complaints(text: bytes) -> dict[str, str]:
    """Of ``promtool check metrics``, by name of the series."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], check=False, input=text, capture_output=True, timeout=30
    )
    said = done.stderr.decode() + done.stdout.decode()
    assert "error while linting" not in said, said
    return dict(line.split(" ", 1) for line in said.splitlines() if line)
