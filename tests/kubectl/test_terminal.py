"""What a terminal shows, and completion, also through kubectl."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hami_web.kubectl import drawing, shapes
from tests.kubectl.conftest import ROOT, Call


def gpu(*intervals: shapes.Interval) -> shapes.ClusterMap:
    one = shapes.MappedDevice(uuid="u", index=0, model="M", memory_slices=8, intervals=[*intervals])
    return shapes.ClusterMap(nodes=[shapes.MappedNode(name="n", gpus=[one])])


def test_states_are_told_apart_by_characters() -> None:
    assert len(set(drawing.FILLS.values())) == len(drawing.FILLS)
    states = ["free", "held", "reserved", "realized", "terminating", "blocked", "unavailable"]
    found = gpu(
        *(shapes.Interval(start=n, size=1, state=state) for n, state in enumerate(states)),
        shapes.Interval(start=7, size=1, state="blocked", detail="foreign instance"),
    )
    first = next(iter(drawing.draw(found, width=120, colour=False)))
    assert first == "n  GPU 0  M  ....[??][--][==][~~][##][xx][%%]"


def test_overlapping_reservations_are_one_conflict() -> None:
    found = gpu(
        shapes.Interval(start=0, size=4, state="conflicted", profile="3g.20gb"),
        shapes.Interval(start=2, size=2, state="conflicted", profile="2g.10gb"),
        *(shapes.Interval(start=n, size=1, state="free") for n in range(4, 8)),
    )
    first = next(iter(drawing.draw(found, width=120, colour=False)))
    assert first == f"n  GPU 0  M  [{'!' * 14}]{'.' * 16}"


def test_a_narrow_terminal_gets_narrow_lines() -> None:
    found = gpu(*(shapes.Interval(start=n, size=1, state="free") for n in range(8)))
    lines = list(drawing.draw(found, width=20, colour=False))
    assert lines[:2] == ["n  GPU 0  M", "  " + "." * 16]
    assert max(map(len, lines)) <= 20


def test_colour_adds_escapes_and_no_characters() -> None:
    found = gpu(shapes.Interval(start=0, size=8, state="realized", profile="7g.40gb"))
    plain = list(drawing.draw(found, width=120, colour=False))
    coloured = "\n".join(drawing.draw(found, width=120, colour=True))
    assert "\x1b[32m" in coloured
    for code in ("2", "31", "32", "33", "34", "35", "36", "37", "0"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == "\n".join(plain)


def test_the_map_of_a_cluster(call: Call, offline: tuple[str, ...]) -> None:
    lines = call(*offline, "map").out.splitlines()
    assert lines[0].endswith("[======3g======][--][~~][%%]....")
    assert lines[1].endswith("[##]" + "." * 28)
    assert any(line.endswith("[!!!!!!]" + "." * 24) for line in lines)


def test_reservations_as_table(call: Call, offline: tuple[str, ...]) -> None:
    lines = [line.split() for line in call(*offline, "reservation", "list").out.splitlines()]
    assert lines[0] == ["NAMESPACE", "POD", "NODE", "PROFILE", "PLACEMENT", "PHASE"]
    assert ["team", "train", "node-a", "3g.20gb", "0:4", "realized"] in lines
    assert ["team", "one", "node-b", "2g.10gb", "0:2", "conflict"] in lines


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["wh"], ["whatif", "why"]),
        (["node", ""], ["detail", "list"]),
        (["map", "-o", ""], ["json", "table", "wide", "yaml"]),
        (["--server", "node"], []),
    ],
)
def test_completion_knows_verbs_and_values(
    call: Call, words: list[str], expected: list[str]
) -> None:
    assert call("__complete", *words).out.splitlines() == [*expected, ":4"]


def test_completion_knows_names_of_the_cluster(call: Call, offline: tuple[str, ...]) -> None:
    ended = call("__complete", *offline, "node", "detail", "")
    assert ended.out.splitlines() == ["node-a", "node-b", ":4"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_what_their_shell_reads(call: Call, shell: str) -> None:
    script = call("completion", shell).out
    assert "__complete" in script
    if (found := shutil.which(shell)) is not None:
        subprocess.run([found, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_finds_it_as_a_plugin_and_hands_its_exit_code_on(
    tmp_path: Path, kubeconfig: Path
) -> None:
    plugin = tmp_path / "kubectl-hami"
    plugin.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from hami_web.kubectl.main import main; main()' "
        '"$@"\n'
    )
    plugin.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(kubeconfig),
    }
    for profile, code in (("1g.5gb", 0), ("7g.40gb", 1), ("none", 1)):
        ended = subprocess.run(
            ["kubectl", "hami", "whatif", "--profile", profile],
            env=environment,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert ended.returncode == code, ended.stderr
