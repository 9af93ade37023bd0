"""Databases and workers that die under load: what the cluster knows is in the mirror afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from hami_web.simulator.client import ApiClient
from hami_web.sync.management.commands.worker import EXIT_STUCK
from tests.sync.processes import ROOT, Redis, Worker, bind, delete

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
POSTGRES = ROOT / ".ci" / "postgres"
EVER = "SELECT pod FROM reservations_migreservation"
LIVE = "SELECT pod FROM reservations_migreservation WHERE released_at IS NULL AND phase <> 'held'"


class Load:
    """Pods that come and go on seven memory slices until told to stop; ``there`` is who is left."""

    def __init__(self, api: ApiClient) -> None:
        self.there: set[str] = set()
        self.turns = 0
        self._api = api
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.05):
            start = self.turns % 7
            for name in [name for name in self.there if name.endswith(f"-at-{start}")]:
                delete(self._api, name)
                self.there.discard(name)
            name = f"job-{self.turns}-at-{start}"
            bind(self._api, name, start)
            self.there.add(name)
            self.turns += 1


class OnPostgres(Worker):
    """A worker whose mirror is in a PostgreSQL of the test's own."""

    def __init__(self, folder: Path, kubeconfig: Path, url: str) -> None:
        self.url = url
        os.environ["HAMI_DATABASE_URL"] = url
        try:
            super().__init__(folder, kubeconfig, "filesystem://")
        finally:
            del os.environ["HAMI_DATABASE_URL"]

    def rows(self, query: str) -> list[tuple]:
        with psycopg.connect(self.url) as database:
            return database.execute(query).fetchall()


def live(worker: Worker) -> set[str]:
    return {name for (name,) in worker.rows(LIVE)}


@pytest.fixture
def postgres() -> Iterator[Path]:
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="hami-drill-", dir="/tmp"))
    yield folder / "database"
    subprocess.run([POSTGRES, "stop", folder / "database"], check=True)
    shutil.rmtree(folder, ignore_errors=True)


def start(folder: Path) -> str:
    folder.parent.chmod(0o755)
    return subprocess.run(
        [POSTGRES, "start", folder], check=True, capture_output=True, text=True
    ).stdout.strip()


def stop_at_once(folder: Path) -> None:
    """As a crash: the postmaster and all its children."""
    pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGQUIT)


def test_a_database_that_stops_and_starts_under_load_loses_nothing(
    postgres: Path,
    api: ApiClient,
    tmp_path: Path,
) -> None:
    worker = OnPostgres(tmp_path, tmp_path / "kubeconfig", start(postgres))
    worker.start()
    try:
        worker.soon(worker.runs)
        with Load(api) as load:
            worker.soon(lambda: load.turns > 5)
            stop_at_once(postgres)
            before = load.turns
            worker.soon(lambda: load.turns > before + 20)
            start(postgres)
            before = load.turns
            worker.soon(lambda: load.turns > before + 10)
        worker.soon(lambda: live(worker) == load.there)
        assert worker.rows("SELECT count(*) FROM reservations_memorysliceclaim") == [(7,)]
    finally:
        worker.close()


def test_a_worker_that_is_killed_again_and_again_under_load_loses_nothing(
    api: ApiClient,
    tmp_path: Path,
) -> None:
    worker = Worker(tmp_path, tmp_path / "kubeconfig", "filesystem://")
    try:
        with Load(api) as load:
            for _ in range(2):
                worker.start()
                before = worker.runs()
                worker.soon(lambda before=before: worker.runs() > before)
                worker.end(signal.SIGKILL)
        worker.start()
        worker.soon(lambda: live(worker) == load.there)
        assert worker.rows("PRAGMA integrity_check") == [("ok",)]
    finally:
        worker.close()


def test_a_locked_database_is_waited_for_and_written_afterwards(
    api: ApiClient,
    tmp_path: Path,
) -> None:
    worker = Worker(tmp_path, tmp_path / "kubeconfig", "filesystem://")
    worker.start()
    try:
        worker.soon(worker.runs)
        with closing(sqlite3.connect(tmp_path / "hami.sqlite3", timeout=30)) as other:
            other.execute("BEGIN IMMEDIATE")
            with Load(api) as load:
                worker.soon(lambda: load.turns > 30)
            other.rollback()
        worker.soon(lambda: live(worker) == load.there)
    finally:
        worker.close()


def test_a_queue_that_is_killed_again_and_again_under_load_loses_nothing(
    redis: Redis,
    api: ApiClient,
    tmp_path: Path,
) -> None:
    worker = Worker(tmp_path, tmp_path / "kubeconfig", redis.url)
    worker.start()
    try:
        worker.soon(lambda: worker.runs() > 1)
        with Load(api) as load:
            for _ in range(3):
                redis.stop()
                before = load.turns
                # Without a queue the feed goes on.
                worker.soon(lambda before=before: load.turns > before + 5)
                newest = f"job-{before + 1}-at-{(before + 1) % 7}"
                worker.soon(lambda newest=newest: (newest,) in worker.rows(EVER))
                redis.start()
                runs = worker.runs()
                worker.soon(lambda runs=runs: worker.runs() > runs)
        worker.soon(lambda: live(worker) == load.there)
        assert worker.rows("SELECT count(*) FROM reservations_memorysliceclaim") == [(7,)]
    finally:
        worker.close()


def test_a_worker_whose_beat_has_died_ends_so_that_it_is_started_anew() -> None:
    code = (
        "import threading, django; django.setup()\n"
        "from hami_web.sync.management.commands import worker\n"
        "beat = threading.Thread(target=lambda: None); beat.start(); beat.join()\n"
        "worker._watch(threading.Event(), beat)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/usr/bin", "DJANGO_SETTINGS_MODULE": "hami_web.settings"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "beat has ended" in done.stderr) == (EXIT_STUCK, True)
