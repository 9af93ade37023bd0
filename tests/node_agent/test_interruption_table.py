"""A kill -9 between every two calls of Allocate, reclaim, adoption, start and after a reboot.

The table is generated: an uninterrupted run counts the calls of a scene (NVML, API server, state
files), then a real agent process is killed at each of them, for each state in which the scene can
go on. ``HAMI_INTERRUPTIONS`` says at which: a number is an even sample of so many rows in each
scene; ``changes`` after each call that changes something, which is every state that a kill can
leave behind; ``all`` between every two calls, reads too, which takes over an hour.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Sequence

import pytest

from tests.node_agent.agents import open_zygote
from tests.node_agent.interruptions import (
    NEVER,
    SCENES,
    Kill,
    Scene,
    every_call,
    every_state,
    play,
)

WANTED = os.environ.get("HAMI_INTERRUPTIONS", "3")


@pytest.fixture(scope="module")
def zygote() -> Iterator[subprocess.Popen[str]]:
    with open_zygote() as process:
        yield process


def rows(scene: Scene, calls: Sequence[str]) -> list[tuple[str, Kill]]:
    """Every kill in every state, or an even sample with a fixed seed."""
    kills = every_call(calls) if WANTED == "all" else every_state(calls)
    table = [(state, kill) for kill in kills for state in scene.states]
    if WANTED in ("all", "changes") or int(WANTED) >= len(table):
        return table
    draw = random.Random(scene.name + WANTED)
    width = len(table) / int(WANTED)
    return [table[int(width * (part + draw.random()))] for part in range(int(WANTED))]


@pytest.mark.slow
@pytest.mark.timeout(120 if WANTED == "3" else 14_400)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_any_call_can_be_the_last_one(zygote: subprocess.Popen[str], scene: Scene) -> None:
    calls, killed = play(zygote, scene, scene.states[0], NEVER)
    assert not killed
    assert len(every_state(calls)) > 5, calls
    kills = 0
    table = rows(scene, calls)
    for state, kill in table:
        _, killed = play(zygote, scene, state, kill)
        kills += killed
    # Threads share the calls, so a late row can find nothing left to be killed in.
    assert kills >= len(table) // 2
