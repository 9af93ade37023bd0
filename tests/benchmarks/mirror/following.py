"""How the mirror follows a cluster: comparisons by its size, and how far the feed lags behind."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import psycopg

from hami_web.core import annotations as keys
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, encode_allocations
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.resources import NODES, PODS
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.benchmarks.fleet import GPUS_PER_NODE, node_documents, node_names, write_fleet
from tests.benchmarks.report import Report

ROOT: Final = Path(__file__).parents[3]
SIZES: Final = (3_000, 30_000)
SIZES_QUICK: Final = (1_000, 5_000)
PODS_PER_NODE: Final = 20
RATE: Final = 50
"""Pods bound in a second."""
NAMES: Final = "SELECT id, pod FROM reservations_migreservation WHERE id > %s ORDER BY id"


def comparisons(report: Report, folder: Path, url: Callable[[], str], *, quick: bool) -> None:
    """Processor time and memory for each Pod, in a small cluster and in one ten times as large."""
    small, large = SIZES_QUICK if quick else SIZES
    found = {}
    for pods in (small, large):
        report.progress(f"comparing the mirror with {pods} Pods")
        with _fleet(folder / str(pods), pods) as kubeconfig:
            found[pods] = _child(url(), kubeconfig)
        assert found[pods]["live"] == pods, found[pods]
        first, again = found[pods]["first"], found[pods]["again"]
        report.table(
            f"compare {pods} Pods: first {first['wall']:.1f} s ({first['cpu']:.1f} s processor), "
            f"again {again['wall']:.1f} s ({again['cpu']:.1f} s); "
            f"{found[pods]['kib'] / 1024:.0f} MiB more"
        )
    for turn in ("first", "again"):
        each = {pods: found[pods][turn]["cpu"] / pods for pods in found}
        report.at_most(
            f"compare-{turn}-for-each-pod-large-over-small", each[large] / each[small], 1.3
        )
    report.at_most("compare-kib-for-each-pod", found[large]["kib"] / large, 16)


def lag(report: Report, folder: Path, database: str, *, quick: bool) -> None:
    """From the answer to a Binding until the row can be read, at 50 Pods a second."""
    seconds = 5 if quick else 20
    report.progress(f"{RATE} Pods a second for {seconds} s, through a worker")
    names = node_names(RATE * seconds // (7 * GPUS_PER_NODE) + 1)
    with SimulatedApiServer() as server, _worker(folder, server.url, database):
        for document in node_documents(names):
            server.api.store.create(NODES, orjson.loads(document))
        seen = _Seen(database)
        bound = _bind(server.url, seconds, seen)
        late = sorted(seen.wait_for(set(bound))[name] - at for name, at in bound.items())
    median, worst = statistics.median(late), late[int(len(late) * 0.99)]
    report.table(f"lag of {len(late)} Pods: median {median:.2f} s, 99 of 100 within {worst:.2f} s")
    report.at_most("lag-seconds-99-of-100", worst, 1.0)


class _Seen:
    """When each reservation could first be read from the database."""

    def __init__(self, database: str) -> None:
        self.at: dict[str, float] = {}
        self._stopped = threading.Event()
        self._database = database
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        last = 0
        with psycopg.connect(self._database, autocommit=True) as connection:
            while not self._stopped.wait(0.02):
                for row, name in connection.execute(NAMES, [last]).fetchall():
                    last = row
                    self.at.setdefault(name, time.monotonic())

    def wait_for(self, names: set[str]) -> dict[str, float]:
        deadline = time.monotonic() + 60
        while not names <= self.at.keys() and time.monotonic() < deadline:
            time.sleep(0.1)
        self._stopped.set()
        self._thread.join()
        assert names <= self.at.keys(), f"{len(names - self.at.keys())} never came"
        return self.at


def _bind(url: str, seconds: int, seen: _Seen) -> dict[str, float]:
    """Pods with reservations at a steady rate; when each was answered."""
    client, bound = ApiClient(Endpoint(url)), {}
    _bind_one(client, 0)
    while "job-0" not in seen.at:
        time.sleep(0.1)
    began = time.monotonic()
    for number in range(1, RATE * seconds):
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))
        _bind_one(client, number)
        bound[f"job-{number}"] = time.monotonic()
    client.close()
    return bound


def _bind_one(client: ApiClient, number: int) -> None:
    place, start = divmod(number, 7)
    node, gpu = divmod(place, GPUS_PER_NODE)
    item = Reservation(0, 0, f"GPU-{node:05d}-{gpu}", "1g.5gb", Placement(start, 1))
    meta = {
        "name": f"job-{number}",
        "annotations": {keys.POD_MIG_ALLOCATIONS: encode_allocations([item])},
    }
    spec = {"nodeName": node_names(node + 1)[node], "containers": [{"name": "a", "image": "x"}]}
    client.create("/api/v1/namespaces/default/pods", {"metadata": meta, "spec": spec})


@contextmanager
def _fleet(folder: Path, pods: int) -> Iterator[Path]:
    """An API server with a cluster of so many Pods; the kubeconfig for it."""
    folder.mkdir()
    write_fleet(folder, pods // PODS_PER_NODE, pods)
    with SimulatedApiServer() as server:
        for kind, resource in (("nodes", NODES), ("pods", PODS)):
            with (folder / f"{kind}.jsonl").open("rb") as lines:
                for line in lines:
                    for document in orjson.loads(line):
                        server.api.store.create(resource, document)
        yield write_kubeconfig(folder / "kubeconfig", server=server.url)


def _child(database: str, kubeconfig: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.mirror.comparing", str(kubeconfig)]
    environment = {**os.environ, "HAMI_DATABASE_URL": database, "HAMI_LOG_LEVEL": "ERROR"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def _worker(folder: Path, server: str, database: str) -> Iterator[None]:
    """A worker as people start it."""
    folder.mkdir()
    environment = {
        **os.environ,
        "HAMI_KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", server=server)),
        "HAMI_DATA_DIR": str(folder),
        "HAMI_DATABASE_URL": database,
        "HAMI_EXTENDER_URL": "http://127.0.0.1:1",
        "HAMI_LOG_LEVEL": "ERROR",
    }
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "worker", "--migrate"], env=environment
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with psycopg.connect(database) as connection:
                    if connection.execute("SELECT 1 FROM history_feed").fetchall():
                        break
            except psycopg.Error:
                pass
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(30)
