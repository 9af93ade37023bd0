"""The web role on a (simulated) API server: what it reads, and what it says when it cannot."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hami_web.core import annotations as keys
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, encode_allocations
from hami_web.dashboard.cells import CellState
from hami_web.dashboard.service import ClusterWatch
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.metrics.promtool import complaints

from .test_drawing import GPU, REGISTER

ROOT = Path(__file__).parents[2]
PODS = "/api/v1/namespaces/default/pods"
CONTAINER = {"name": "a", "image": "x", "resources": {"limits": {keys.RESOURCE_COUNT: "1"}}}


@pytest.fixture
def server() -> Iterator[SimulatedApiServer]:
    with SimulatedApiServer() as server:
        yield server


@pytest.fixture
def api(server: SimulatedApiServer) -> Iterator[ApiClient]:
    client = ApiClient(Endpoint(server.url))
    register = {keys.NODE_REGISTER: REGISTER.read_text().strip()}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    client.create(
        "/api/v1/nodes", {"metadata": {"name": "n1", "annotations": register}, "status": ready}
    )
    yield client
    client.close()


@pytest.fixture
def kubeconfig(server: SimulatedApiServer, tmp_path: Path) -> Path:
    return write_kubeconfig(tmp_path / "kubeconfig", server=server.url)


@pytest.fixture
def watch(api: ApiClient, kubeconfig: Path) -> Iterator[ClusterWatch]:
    watch = ClusterWatch(kubeconfig, ["example.com/pool"])
    watch.start()
    yield watch
    watch.stop()


def soon(look: Callable[[], object], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, "not seen in time"
        time.sleep(0.02)


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as error:
        with error:
            return False


def bound(name: str) -> dict[str, object]:
    text = encode_allocations([Reservation(0, 0, GPU, "1g.5gb", Placement(2, 1))])
    meta = {"name": name, "annotations": {keys.POD_MIG_ALLOCATIONS: text}}
    return {"metadata": meta, "spec": {"nodeName": "n1", "containers": [CONTAINER]}}


def states(watch: ClusterWatch) -> set[CellState]:
    current = watch.live.current()
    return {cell.state for cell in current.rows[GPU].cells} if current else set()


def test_a_bound_pod_appears_and_goes(watch: ClusterWatch, api: ApiClient) -> None:
    soon(lambda: states(watch) == {CellState.FREE})
    api.create(PODS, bound("job"))
    soon(lambda: CellState.BOUND in states(watch))
    api.delete(f"{PODS}/job", {"gracePeriodSeconds": 0})
    soon(lambda: states(watch) == {CellState.FREE})


def test_a_label_that_is_put_on_a_node_moves_it_to_a_pool(
    watch: ClusterWatch, api: ApiClient
) -> None:
    soon(lambda: states(watch))
    api.patch("/api/v1/nodes/n1", {"metadata": {"labels": {"example.com/pool": "train"}}})
    soon(lambda: [node.pool for node in watch.live.current().nodes] == ["train"])


def test_a_pod_without_node_waits_with_the_schedulers_words(
    watch: ClusterWatch, api: ApiClient
) -> None:
    api.create(PODS, {"metadata": {"name": "job"}, "spec": {"containers": [CONTAINER]}})
    soon(lambda: watch.live.current() and len(watch.live.current().waiting) == 1)
    said = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}
    api.patch(f"{PODS}/job/status", {"status": {"conditions": [said]}})
    soon(lambda: [pod.reason for pod in watch.live.current().waiting] == ["0/1 nodes"])


def test_an_api_server_that_is_gone_is_named_and_the_map_stays(
    watch: ClusterWatch, server: SimulatedApiServer
) -> None:
    soon(lambda: states(watch))
    server.stop()
    soon(lambda: watch.live.freshness().error)
    assert "/api/v1/" in watch.live.freshness().error
    assert states(watch)


def test_the_command_serves_and_stops_with_open_streams(
    api: ApiClient, kubeconfig: Path, tmp_path: Path
) -> None:
    data = {"HAMI_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "hami_web.settings"}
    prepare = [sys.executable, str(ROOT / "manage.py"), "prepare", "-v0"]
    subprocess.run(prepare, env=os.environ | data, check=True, timeout=60)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        metrics = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "web", "--listen", "127.0.0.1:0"],
        env={
            **os.environ,
            "HAMI_KUBECONFIG": str(kubeconfig),
            "HAMI_METRICS_LISTEN": metrics,
            "HAMI_ANONYMOUS_ROLE": "viewer",
            **data,
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        soon(lambda: is_ready(url), 30)
        with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=5) as answer:
            served = answer.read()
        assert b'method="GET",route="readyz",status="2xx"' in served
        if shutil.which("promtool"):
            assert complaints(served) == {}
        with urllib.request.urlopen(f"{url}/events?since=0", timeout=5) as stream:
            assert stream.readline() == b"retry: 3000\n"
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(10)
            assert time.monotonic() - began < 4
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_an_address_that_is_none_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "web", "--listen", "nowhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "'nowhere' is not allowed; allowed: host:port" in done.stderr
