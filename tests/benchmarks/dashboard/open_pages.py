"""Two hundred open dashboards on one web process, as browsers hold them open.

Each reads the stream of events and fetches what it names, exactly as the page's script does; the
cluster behind is the simulated API server with 2,000 GPUs, where one reservation changes at a time.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from hami_web.core import annotations as keys
from hami_web.simulator.resources import NODES, PODS
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.benchmarks.fleet import write_fleet
from tests.benchmarks.report import Report

ROOT: Final = Path(__file__).parents[3]
DASHBOARDS: Final = 200
NODES_WITH_GPUS: Final = 250
PODS_THERE: Final = 6_000
SECONDS: Final = 20.0
CHANGE_EVERY_S: Final = 2.0
"""A reservation is made, realized or ended so often: thirty a minute, all day."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def measure(report: Report, folder: Path) -> None:
    """What the open pages cost beside the same changes without any."""
    folder.mkdir()
    report.progress("a cluster of 2,000 GPUs")
    with _cluster(folder) as server, _web(folder, server.url) as (port, process):
        alone = _spent(server, process, SECONDS)
        memory = _memory(process)
        report.progress(f"{DASHBOARDS} dashboards")
        with _pages(port, _version(port)) as (seen, fetched):
            time.sleep(3)
            together = _spent(server, process, SECONDS)
            more = _memory(process) - memory
    cores = (together - alone) / SECONDS
    report.table(
        f"{DASHBOARDS} dashboards: {cores:.2f} of a core and {more / 1024:.0f} MiB more; "
        f"{len(seen)} changes told, {len(fetched)} parts fetched beside"
    )
    report.at_least("dashboards-told-changes", len(seen), DASHBOARDS * SECONDS / CHANGE_EVERY_S / 2)
    report.at_most("dashboards-cores", cores, 1 / 3)
    report.at_most("dashboards-mib", more / 1024, 150)


@contextmanager
def _cluster(folder: Path) -> Iterator[SimulatedApiServer]:
    write_fleet(folder, NODES_WITH_GPUS, PODS_THERE)
    with SimulatedApiServer() as server:
        for kind, resource in (("nodes", NODES), ("pods", PODS)):
            with (folder / f"{kind}.jsonl").open("rb") as lines:
                for line in lines:
                    for document in orjson.loads(line):
                        server.api.store.create(resource, document)
        yield server


@contextmanager
def _web(folder: Path, server: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {
        **os.environ,
        "HAMI_KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", server=server)),
        "HAMI_DATA_DIR": str(folder),
        "HAMI_ANONYMOUS_ROLE": "viewer",
        "HAMI_ANONYMOUS_NAMESPACES": "*",
        "HAMI_WEB_LISTEN": f"127.0.0.1:{port}",
        "HAMI_LOG_LEVEL": "ERROR",
    }
    manage = [sys.executable, str(ROOT / "manage.py")]
    subprocess.run([*manage, "migrate", "-v0"], env=environment, check=True)
    process = subprocess.Popen([*manage, "web"], env=environment)
    try:
        deadline = time.monotonic() + 60
        while not _ready(port):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield port, process
    finally:
        process.terminate()
        process.wait(20)


def _ready(port: int) -> bool:
    try:
        return _get(port, "/readyz")[0] == 200
    except OSError:
        return False


def _get(port: int, path: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def _version(port: int) -> int:
    return int(_get(port, "/")[2]["X-Data-Version"])


@contextmanager
def _pages(port: int, version: int) -> Iterator[tuple[list[int], list[str]]]:
    """Open pages; the changes that they were told, and what they fetched beside."""
    stopped = threading.Event()
    seen: list[int] = []
    fetched: list[str] = []
    threads = [
        threading.Thread(target=_page, args=(port, version, stopped, seen, fetched), daemon=True)
        for _ in range(DASHBOARDS)
    ]
    for thread in threads:
        thread.start()
    yield seen, fetched
    stopped.set()


def _page(
    port: int, version: int, stopped: threading.Event, seen: list[int], fetched: list[str]
) -> None:
    """The script of one page: a stream, and a fetch for each thing that changed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/events?since={version}&parts=brief")
    lines = connection.getresponse()
    event = ""
    fetcher = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not stopped.is_set():
        line = lines.readline().decode().strip()
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: ") and event == "change":
            change = json.loads(line.removeprefix("data: "))
            seen.append(change["version"])
            for name in {*change["changed"], "summary"} - change.get("parts", {}).keys():
                path = (
                    f"/fragments/gpus/{name}" if name.startswith("GPU-") else "/fragments/summary"
                )
                fetcher.request("GET", path, headers={"Accept-Encoding": "gzip"})
                answer = fetcher.getresponse()
                answer.read()
                assert answer.status == 200, (path, answer.status)
                fetched.append(name)


def _spent(server: SimulatedApiServer, process: subprocess.Popen[bytes], seconds: float) -> float:
    """Processor seconds of the web process while reservations change."""
    rng, store = random.Random(3), server.api.store
    pods = [stored.key for stored in store.listing(PODS)[1][:200]]
    before, began = _cpu(process), time.monotonic()
    while time.monotonic() - began < seconds:
        store.change(PODS, rng.choice(pods), _other_phase)
        time.sleep(CHANGE_EVERY_S)
    return _cpu(process) - before


def _other_phase(pod: dict[str, Any]) -> dict[str, Any]:
    """A reservation that was realized is not yet, and the other way round."""
    notes = pod["metadata"]["annotations"]
    records = json.loads(notes[keys.POD_MIG_ALLOCATIONS])
    for record in records:
        if record.pop("migUUID", None):
            del record["gpuInstanceID"], record["computeInstanceID"]
        else:
            record |= {"migUUID": "MIG-1", "gpuInstanceID": 7, "computeInstanceID": 0}
    text = json.dumps(records, separators=(",", ":"))
    metadata = {**pod["metadata"], "annotations": {**notes, keys.POD_MIG_ALLOCATIONS: text}}
    return {**pod, "metadata": metadata}


def _cpu(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(process: subprocess.Popen[bytes]) -> float:
    """Resident memory in KiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return float(status.split("VmRSS:")[1].split()[0])
