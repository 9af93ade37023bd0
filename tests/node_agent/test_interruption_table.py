"""A kill -9 between every two calls of Allocate, reclaim, adoption, start and after a reboot.

The table is generated: an uninterrupted run counts the calls of a scene (NVML, API server, state
files), then a real agent process is killed before and after each of them, for each state in which
the scene can go on. A run takes a sample of the rows, of ``HAMI_INTERRUPTIONS`` rows in each scene
(``all`` for every row, which takes over an hour).
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator

import pytest

from tests.node_agent.agents import open_zygote
from tests.node_agent.interruptions import SCENES, Scene, play

WANTED = os.environ.get("HAMI_INTERRUPTIONS", "3")
NEVER = 1_000_000


@pytest.fixture(scope="module")
def zygote() -> Iterator[subprocess.Popen[str]]:
    with open_zygote() as process:
        yield process


def rows(scene: Scene, calls: int) -> list[tuple[str, int, str]]:
    """Every state, call and side of it, or an even sample with a fixed seed."""
    table = [
        (state, number, when)
        for number in range(1, calls + 1)
        for when in ("before", "after")
        for state in scene.states
    ]
    if WANTED == "all" or int(WANTED) >= len(table):
        return table
    draw = random.Random(scene.name + WANTED)
    width = len(table) / int(WANTED)
    return [table[int(width * (part + draw.random()))] for part in range(int(WANTED))]


@pytest.mark.slow
@pytest.mark.timeout(120 if WANTED == "3" else 14_400)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_any_call_can_be_the_last_one(zygote: subprocess.Popen[str], scene: Scene) -> None:
    calls, killed = play(zygote, scene, scene.states[0], NEVER, "before")
    assert not killed
    assert len(calls) > 20, calls
    kills = 0
    table = rows(scene, len(calls))
    for state, number, when in table:
        _, killed = play(zygote, scene, state, number, when)
        kills += killed
    # Threads share the calls, so a late row can find nothing left to be killed in.
    assert kills >= len(table) // 2
