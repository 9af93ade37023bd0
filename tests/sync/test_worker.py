"""The worker as a process, on a simulated API server: followed, killed, and without its queue."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hami_web.core import annotations as keys
from hami_web.simulator.client import ApiClient

from .views import allocations

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
ROOT = Path(__file__).parents[2]
PODS = "/api/v1/namespaces/default/pods"


class Worker:
    """A worker with its own folder, started and killed as a test likes."""

    def __init__(self, folder: Path, kubeconfig: Path, broker: str) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "HAMI_KUBECONFIG": str(kubeconfig),
            "HAMI_DATA_DIR": str(folder),
            "HAMI_BROKER_URL": broker,
            "HAMI_RECONCILE_SECONDS": "1",
            "HAMI_EXTENDER_URL": "http://127.0.0.1:1",  # none
            "HAMI_METRICS_LISTEN": f"127.0.0.1:{_free_port()}",
            "DJANGO_SETTINGS_MODULE": "hami_web.settings",
        }
        self.log = folder / "worker.log"
        self._process: subprocess.Popen[bytes] | None = None
        subprocess.run(self.command("migrate", "-v0"), env=self.environment, check=True, timeout=60)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *arguments]

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command("worker"), env=self.environment, stdout=log, stderr=log
            )

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        code = self._process.wait(20)
        self._process = None
        return code

    def close(self) -> None:
        if self._process is not None:
            self.end()

    def rows(self, query: str) -> list[tuple]:
        with closing(sqlite3.connect(self.folder / "hami.sqlite3", timeout=10)) as database:
            found = database.execute(query).fetchall()
            database.commit()
            return found

    def live(self) -> set[str]:
        query = "SELECT pod FROM reservations_migreservation WHERE released_at IS NULL"
        return {name for (name,) in self.rows(query)}

    def runs(self) -> int:
        return self.rows("SELECT count(*) FROM history_reconciliation")[0][0]

    def metric(self, sample: str) -> float | None:
        """A value of this worker's metrics; None while it does not answer or have it."""
        address = self.environment["HAMI_METRICS_LISTEN"]
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return None
        found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return float(found[sample]) if sample in found else None

    def soon(self, look: Callable[[], object], seconds: float = 60) -> float:
        began = time.monotonic()
        while not look():
            assert time.monotonic() < began + seconds, self.log.read_text()[-4000:]
            time.sleep(0.03)
        return time.monotonic() - began


@pytest.fixture
def worker(api: ApiClient, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path, tmp_path / "kubeconfig", "filesystem://")
    worker.start()
    yield worker
    worker.close()


def bind(api: ApiClient, name: str, start: int) -> None:
    meta = {"name": name, "annotations": {keys.POD_MIG_ALLOCATIONS: allocations(start)}}
    spec = {"nodeName": "n1", "containers": [{"name": "a", "image": "x"}]}
    api.create(PODS, {"metadata": meta, "spec": spec})


def slowness() -> float:
    """How many times slower this machine is now than one that does nothing else; at least 1."""
    wall, worked = time.monotonic(), time.process_time()
    while time.process_time() - worked < 0.05:
        pass
    return max(1.0, (time.monotonic() - wall) / 0.05)


def delete(api: ApiClient, name: str) -> None:
    api.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})


def test_the_feed_is_seen_within_a_second_and_the_worker_stops_when_told(
    worker: Worker, api: ApiClient
) -> None:
    worker.soon(lambda: worker.rows("SELECT 1 FROM history_feed") and worker.runs())
    bind(api, "job", 0)
    assert worker.soon(lambda: worker.live() == {"job"}) < slowness()
    delete(api, "job")
    assert worker.soon(lambda: worker.live() == set()) < slowness()
    assert worker.end(signal.SIGTERM) == 0


def test_what_happened_while_a_killed_worker_was_away_is_made_up_for(
    worker: Worker, api: ApiClient
) -> None:
    bind(api, "gone", 0)
    worker.soon(lambda: worker.live() == {"gone"} and worker.runs())
    worker.end(signal.SIGKILL)
    delete(api, "gone")
    bind(api, "new", 0)
    worker.start()
    worker.soon(lambda: worker.live() == {"new"})
    worker.soon(lambda: worker.rows("PRAGMA integrity_check") == [("ok",)])


def test_two_workers_at_once_write_each_row_once(worker: Worker, api: ApiClient) -> None:
    worker.soon(worker.runs)
    second = Worker(worker.folder, worker.folder / "kubeconfig", "filesystem://")
    second.start()
    try:
        for start in range(3):
            bind(api, f"job-{start}", start)
        before = worker.runs()
        worker.soon(lambda: worker.runs() > before + 4)
        assert worker.live() == {"job-0", "job-1", "job-2"}
        query = "SELECT count(*) FROM reservations_migreservation"
        assert worker.rows(query) == [(3,)]
    finally:
        second.close()


def test_rows_changed_by_hand_are_corrected_and_counted(worker: Worker, api: ApiClient) -> None:
    bind(api, "job", 0)
    worker.soon(lambda: worker.live() == {"job"} and worker.runs() > 1)
    worker.rows("DELETE FROM reservations_memorysliceclaim")
    worker.rows("DELETE FROM reservations_migreservation")
    worker.soon(lambda: worker.live() == {"job"})
    query = "SELECT cause FROM history_drift WHERE kind = 'missing' AND entity = 'reservation'"
    worker.soon(lambda: ("altered",) in worker.rows(query))


def test_any_worker_tells_the_same_of_the_mirror_and_goes_on_counting(
    worker: Worker, api: ApiClient
) -> None:
    bind(api, "job", 0)
    corrected = 'hami_mirror_corrections_total{cause="altered",entity="reservation",kind="missing"}'
    ended = 'hami_worker_tasks_total{outcome="succeeded",task="reconcile"}'
    worker.soon(lambda: worker.metric('hami_mirror_rows{entity="reservation"}') == 1)
    worker.soon(lambda: worker.runs() > 1 and (worker.metric(ended) or 0) > 1)
    worker.rows("DELETE FROM reservations_memorysliceclaim")
    worker.rows("DELETE FROM reservations_migreservation")
    worker.soon(lambda: worker.metric(corrected) == 1)
    before = worker.metric(ended)
    worker.end(signal.SIGKILL)
    second = Worker(worker.folder, worker.folder / "kubeconfig", "filesystem://")
    second.start()
    try:
        second.soon(lambda: (second.metric(ended) or 0) > before)
        assert second.metric(corrected) == 1
        second.soon(lambda: second.metric('hami_informer_relists_total{resource="pods"}'))
        assert second.metric("hami_mirror_lag_seconds") < 10
    finally:
        second.close()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: apt-get install redis-server")
    redis = Redis()
    redis.start()
    yield redis
    redis.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Redis:
    """A Redis of the test's own that forgets everything when it stops."""

    def __init__(self) -> None:
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
            stdout=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def test_redis_may_restart_and_forget_and_reconciliation_goes_on(
    redis: Redis, api: ApiClient, tmp_path: Path
) -> None:
    worker = Worker(tmp_path, tmp_path / "kubeconfig", redis.url)
    worker.start()
    try:
        worker.soon(lambda: worker.runs() > 1)
        for name in ("first", "second"):
            redis.stop()
            bind(api, name, len(worker.live()))
            assert worker.soon(lambda name=name: name in worker.live()) < slowness()
            redis.start()
            before = worker.runs()
            worker.soon(lambda before=before: worker.runs() > before + 1)
        assert worker.live() == {"first", "second"}
    finally:
        worker.close()
