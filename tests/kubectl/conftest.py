"""One cluster, served as annotations by a simulated API server and as a mirror by the web role."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from hami_web.core import annotations as keys
from hami_web.core.blocked import FOREIGN, BlockedInterval
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, RuntimeIdentity
from hami_web.kubectl import main
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.boards import ALLOWED_A100, board
from tests.planning.clusters import Cluster, asking, bound, node

ROOT = Path(__file__).parents[2]
MIG_UUID = "MIG-5c0e5f3c-55a1-5d0e-9f0a-111111111111"


def the_cluster() -> Cluster:
    """Two nodes: realized, reserved, terminating, foreign, blocked, conflicting and free."""
    first, second, third = (
        board("a100-sxm4-40gb", f"GPU-{number}", number % 2, names=ALLOWED_A100)
        for number in range(3)
    )
    identity = RuntimeIdentity(MIG_UUID, 1, 0)
    blocked = (
        BlockedInterval("GPU-0", Placement(6, 1), FOREIGN),
        BlockedInterval("GPU-1", Placement(0, 1), "destroy refused: in use"),
    )

    def on(uuid: str, profile: str, start: int, size: int, **more: object) -> list[Reservation]:
        return [Reservation(0, 0, uuid, profile, Placement(start, size), **more)]  # type: ignore[arg-type]

    return Cluster(
        [
            node("node-a", (first, second), blocked=blocked),
            node("node-b", (third,), cordoned="GPU-2"),
        ],
        [
            bound("train", "node-a", on("GPU-0", "3g.20gb", 0, 4, identity=identity)),
            bound("serve", "node-a", on("GPU-0", "1g.5gb", 4, 1)),
            bound("over", "node-a", on("GPU-0", "1g.5gb", 5, 1, identity=identity), deleting=True),
            bound("one", "node-b", on("GPU-2", "2g.10gb", 0, 2)),
            bound("two", "node-b", on("GPU-2", "1g.5gb", 1, 1)),
        ],
    )


def document(kind: str, view: object) -> dict[str, object]:
    made = _without_nothing(msgspec.to_builtins(view))
    assert isinstance(made, dict)
    return {"apiVersion": "v1", "kind": kind, **made}


def _without_nothing(value: object) -> object:
    if isinstance(value, dict):
        return {k: _without_nothing(v) for k, v in value.items() if v not in (None, "")}
    return [_without_nothing(item) for item in value] if isinstance(value, list) else value


@dataclass
class Ended:
    code: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HAMI_SERVER", "HAMI_TOKEN", "HAMI_TOKEN_FILE", "HAMI_CA_FILE", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def call() -> Call:
    def run(*words: str) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main.run(words)
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Ended(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    cluster = the_cluster()
    waiting = asking("waits", {keys.RESOURCE_COUNT: 1, keys.RESOURCE_MEMORY: 40000})
    with SimulatedApiServer() as server:
        with closing(ApiClient(Endpoint(server.url))) as api:
            team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
            api.create("/api/v1/namespaces", team)
            for each in cluster.nodes:
                api.create("/api/v1/nodes", document("Node", each))
            for pod in [*cluster.pods, waiting]:
                made = document("Pod", pod)
                spec: dict[str, object] = {"containers": [{"name": "c"}]} | made["spec"]  # type: ignore[operator]
                spec["containers"] = [{"image": "i", **each} for each in spec["containers"]]  # type: ignore[attr-defined,misc]
                made["spec"] = spec
                api.create("/api/v1/namespaces/team/pods", made)
                if pod.is_deleting:
                    api.delete(f"/api/v1/namespaces/team/pods/{pod.metadata.name}")
        yield write_kubeconfig(tmp_path_factory.mktemp("kube") / "config", server=server.url)


@pytest.fixture
def offline(kubeconfig: Path) -> tuple[str, ...]:
    return ("--kubeconfig", str(kubeconfig), "-n", "team")


@pytest.fixture(scope="module")
def web(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """A real web process; the options that name it and the caller."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "HAMI_DATA_DIR": str(tmp_path_factory.mktemp("web")),
        "HAMI_KUBECONFIG": str(kubeconfig),
    }
    command = [sys.executable, "-m", "tests.kubectl.web", str(kubeconfig), address]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        token = process.stdout.readline().decode().strip()
        assert token, "the web process ended"
        _wait_for(address)
        yield ("--server", f"http://{address}", "--token", token)
        process.terminate()


def _wait_for(address: str) -> None:
    host, port = address.split(":")
    deadline = time.monotonic() + 40
    while True:
        try:
            socket.create_connection((host, int(port)), 1).close()
        except OSError:
            assert time.monotonic() < deadline, "the web process does not listen"
            time.sleep(0.05)
        else:
            return


@pytest.fixture
def online(web: tuple[str, ...]) -> tuple[str, ...]:
    return (*web, "-n", "team")
