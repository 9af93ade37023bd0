"""``python -m tests.benchmarks.mirror [--quick]``: the goals of the mirror, on PostgreSQL.

Reads beside 2,000 GPUs with 20,000 live reservations, in two databases of one server: one with a
million reservations that are over, one with ten thousand. Comparisons with clusters of 3,000 and of
30,000 Pods, and the lag of the feed at 50 Pods a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.mirror import exposition, following
from tests.benchmarks.report import Report

ROOT: Final = Path(__file__).parents[3]
POSTGRES: Final = str(ROOT / ".ci" / "postgres")
FEW: Final = 10_000
MANY: Final = 1_000_000
MANY_QUICK: Final = 100_000
ROUNDS: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was measured and the goals."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.mirror")
    parser.add_argument("--quick", action="store_true", help=f"a history of {MANY_QUICK:,} rows")
    quick = parser.parse_args(arguments).quick
    report = Report()
    series(report)
    with tempfile.TemporaryDirectory(prefix="hami-mirror-") as name, server(Path(name)) as url:
        large = MANY_QUICK if quick else MANY
        folder = Path(name)
        following.lag(report, folder / "lag", database(folder, url, "lag"), quick=quick)
        following.comparisons(report, folder, quick=quick, url=lambda: database(folder, url))
        urls = {FEW: url, large: database(folder, url, "many")}
        for rows, address in urls.items():
            report.progress(f"copying {rows} reservations that are over")
            child(address, "fill", rows)
        found = measured(report, urls, times=20)
        reads(report, found[large])
        history(report, found[FEW], found[large])
    return report.finish()


def series(report: Report) -> None:
    """The extender's text."""
    report.progress("exposing some 14,000 series")
    count, ours, theirs = exposition.measure()
    report.table(f"metrics: {count} series, {ours * 1e3:.0f} ms; constant {theirs * 1e3:.0f} ms")
    report.at_least("metrics-series", count, 14_000)
    report.at_most("metrics-over-constant-exposition", ours / theirs, 1.5)


def reads(report: Report, large: dict[str, Any]) -> None:
    """Pages and the map against the least that they could cost."""
    for name, page in large["pages"].items():
        ratio = page["page"] / page["sql"]
        report.table(
            f"page {name}: {page['page'] * 1e3:.1f} ms, {page['queries']} queries; "
            f"bare SQL {page['sql'] * 1e3:.1f} ms; {ratio:.1f}"
        )
        report.at_most(f"page-{name}-over-bare-sql", ratio, 4)
    shown = large["map"]
    report.table(
        f"map: {shown['page'] * 1e3:.0f} ms for {shown['bytes'] / 1e6:.1f} MB; "
        f"json.dumps {shown['json'] * 1e3:.0f} ms"
    )
    report.at_most("map-over-encoding-its-json", shown["page"] / shown["json"], 3)


def history(report: Report, few: dict[str, Any], large: dict[str, Any]) -> None:
    """The same with a long history and with a short one."""
    for name, page in large["pages"].items():
        ratio = page["page"] / few["pages"][name]["page"]
        report.at_most(f"page-{name}-long-over-short-history", ratio, 1.2)
    ratio = large["map"]["page"] / few["map"]["page"]
    report.at_most("map-long-over-short-history", ratio, 1.2)


def measured(report: Report, urls: dict[int, str], times: int) -> dict[int, dict[str, Any]]:
    """The least costs of several rounds, in which the databases take turns."""
    found: dict[int, dict[str, Any]] = {}
    for number in range(ROUNDS):
        for rows, address in urls.items():
            report.progress(f"reading beside {rows} rows of history, round {number + 1}")
            result = json.loads(child(address, "measure", times))
            found[rows] = least(found.get(rows, result), result)
    return found


def least(left: Any, right: Any) -> Any:
    """The smaller of all figures."""
    if isinstance(left, dict):
        return {key: least(value, right[key]) for key, value in left.items()}
    return min(left, right)


def child(url: str, *arguments: object) -> str:
    """Run :mod:`reads` on a database; what it printed."""
    environment = {
        **os.environ,
        "HAMI_DATABASE_URL": url,
        "HAMI_API_CALLS_PER_MINUTE": "1000000",
        "HAMI_ALLOWED_HOSTS": "localhost",
        "HAMI_LOG_LEVEL": "ERROR",
    }
    command = [sys.executable, "-m", "tests.benchmarks.mirror.reads", *map(str, arguments)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def database(folder: Path, url: str, name: str = "") -> str:
    """The URL of one more database of the server."""
    name = name or f"d{time.monotonic_ns()}"
    query = f"CREATE DATABASE {name}"
    data = str(folder / "postgres")
    subprocess.run(["psql", "-h", data, "-U", "hami", "-qc", query, "hami"], check=True)
    return url.replace("/hami?", f"/{name}?")


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own; the URL of its first database."""
    folder.chmod(0o755)
    data = folder / "postgres"
    started = subprocess.run([POSTGRES, "start", data], check=True, stdout=subprocess.PIPE)
    try:
        url = started.stdout.decode().strip()
        yield url
    finally:
        subprocess.run([POSTGRES, "stop", data], check=True)


if __name__ == "__main__":
    sys.exit(main())
