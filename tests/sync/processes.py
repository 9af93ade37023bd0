"""The worker and Redis as processes of a test's own, and Pods that come and go."""

from __future__ import annotations

import functools
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from hami_web.core import annotations as keys
from hami_web.simulator.client import ApiClient

from .views import allocations

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
        database = folder / "hami.sqlite3"
        if "HAMI_DATABASE_URL" in os.environ:
            migrate(self.environment)
        elif not database.exists():
            database.write_bytes(_migrated_file())

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

    def served(self) -> bytes:
        """What this worker's ``/metrics`` answers; OSError while it does not."""
        address = self.environment["HAMI_METRICS_LISTEN"]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            return answer.read()

    def metric(self, sample: str) -> float | None:
        """A value of this worker's metrics; None while it does not answer or have it."""
        try:
            lines = self.served().decode().splitlines()
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


def migrate(environment: Mapping[str, str]) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "migrate", "-v0"]
    subprocess.run(command, env=environment, check=True, timeout=120)


@functools.cache
def _migrated_file() -> bytes:
    """A SQLite file with all tables and no rows of ours; it is made once."""
    with tempfile.TemporaryDirectory(prefix="hami-migrated-") as folder:
        settings = {"HAMI_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "hami_web.settings"}
        migrate({**os.environ, **settings})
        return (Path(folder) / "hami.sqlite3").read_bytes()


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
