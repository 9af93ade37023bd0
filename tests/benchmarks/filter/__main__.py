"""``python -m tests.benchmarks.filter [--quick]``: the goals of decision speed.

Ratios are of medians in one process and one run. Costs of loading are processor seconds. The
figures of HAMi v2.10 are medians and 99th percentiles of its own /filter on two cores, with 2,000
nodes of eight A100s and 5,000 Pods, quiet logging.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.filter.http import over_http
from tests.benchmarks.fleet import write_fleet
from tests.benchmarks.report import Report

HAMI_MEDIAN_S = 0.210
HAMI_P99_S = 0.385
HAMI_RESIDENT_MIB = 445.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.filter")
    parser.add_argument("--quick", action="store_true", help="under a minute, fewer repeats")
    quick = parser.parse_args(arguments).quick
    report = Report()
    repeats = 200 if quick else 2000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = fleet(report, folder / "large", 5_000, 100_000)
        parts = "all,tenth,many,change,full"
        result = work(report, large, 5_000, repeats, parts)
        decisions(report, result)
        few = fleet(report, folder / "few", 5_000, 1_000)
        baseline = work(report, few, 5_000, repeats, "all")
        ratio = result["all"]["median"] / baseline["all"]["median"]
        report.at_most("decision-100000-over-1000-pods", ratio, 1.2)
        beside = fleet(report, folder / "beside", 2_000, 5_000)
        beside_hami(report, work(report, beside, 2_000, repeats, "all"))
        over_http(report, large, beside, quick=quick)
    return report.finish()


def fleet(report: Report, folder: Path, nodes: int, pods: int) -> Path:
    """A cluster as files."""
    report.progress(f"writing {nodes} nodes and {pods} Pods")
    folder.mkdir()
    write_fleet(folder, nodes, pods)
    return folder


def work(report: Report, folder: Path, nodes: int, repeats: int, parts: str) -> dict[str, Any]:
    """Run one worker process and read what it measured."""
    report.progress(f"measuring {parts} with {nodes} nodes")
    arguments = [str(folder), str(nodes), str(repeats), parts]
    command = [sys.executable, "-m", "tests.benchmarks.filter.worker", *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(output)
    for name, value in result.items():
        report.table(f"{nodes} nodes: {name} {shown(value)}")
    return result


def shown(value: object) -> str:
    """Figures short enough for a line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:.6f}" for key, number in value.items())
    return f"{value:.6f}"


def decisions(report: Report, result: dict[str, Any]) -> None:
    """The goals of one process with 5,000 nodes and 100,000 reservations."""
    every, tenth = result["all"], result["tenth"]
    report.at_most("decision-5000-names-over-loads", every["median"] / every["loads"], 6)
    report.at_most("decision-500-names-over-loads-of-5000", tenth["median"] / every["loads"], 0.6)
    report.at_most("decision-p99-over-median", every["p99"] / every["median"], 5)
    report.at_most("four-devices-5000-names-ms", result["many"]["median"] * 1e3, 5)
    report.at_most("change-of-one-node-us", result["change"] * 1e6, 200)
    report.at_most("rebuild-100000-reservations-cpu-s", result["pods_cpu"], 1)
    report.at_most("resident-mib", result["rss_mib"], 300)
    full = result["full"]
    report.at_most("full-nodes-body-s", full["decision"], 5)
    report.at_most("full-nodes-over-json-loads", full["decision"] / full["loads"], 1 / 8)


def beside_hami(report: Report, result: dict[str, Any]) -> None:
    """Against the recorded figures of HAMi v2.10 at 2,000 nodes and 5,000 Pods."""
    every = result["all"]
    report.at_least("hami-median-over-ours", HAMI_MEDIAN_S / every["median"], 100)
    report.at_least("hami-p99-over-ours", HAMI_P99_S / every["p99"], 100)
    report.at_most("resident-over-hami", result["rss_mib"] / HAMI_RESIDENT_MIB, 0.25)


if __name__ == "__main__":
    sys.exit(main())
