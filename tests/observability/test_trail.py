"""One Pod can be followed through the lines of all roles, and one request from web to worker."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from logging import INFO, StreamHandler, getLogger
from pathlib import Path
from typing import Any

import pytest

from hami_web.access.audit import Actor
from hami_web.access.caller import Source
from hami_web.celery import app
from hami_web.core.log_lines import JsonFormatter, about, current
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from hami_web.sync import tasks
from hami_web.verbs.migration import start_check
from tests.cluster.processes import free_port
from tests.extender.conftest import Extender
from tests.node_agent.lab import Lab, open_lab, wait_until
from tests.node_agent.reserving import NODE
from tests.observability.collector import collecting

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations.md"


@contextmanager
def extender_of(lab: Lab, collector: str) -> Iterator[Extender]:
    port = free_port()
    environment = {
        "HAMI_KUBECONFIG": lab.environment["HAMI_KUBECONFIG"],
        "HAMI_EXTENDER_LISTEN": f"127.0.0.1:{port}",
        "HAMI_LOG_FORMAT": "json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
        "HAMI_DATA_DIR": str(lab.folder),
        "DJANGO_SETTINGS_MODULE": "hami_web.settings",
    }
    with (lab.folder / "extender.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "extender"],
            start_new_session=True,
            env=os.environ | environment,
            stderr=log,
        )
    extender = Extender(port, process)
    try:
        extender.wait_ready(within_s=40)
        yield extender
    finally:
        extender.stop()


def entries(lab: Lab) -> list[dict[str, Any]]:
    """What the processes logged, in the order of time."""
    lines = [
        line
        for name in ("extender.log", "agent.log")
        for line in (lab.folder / name).read_text().splitlines()
    ]
    return sorted(map(json.loads, lines), key=lambda entry: entry["time"])


def gpu_pod(lab: Lab, name: str) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4500"}
    spec = {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return lab.client.create("/api/v1/namespaces/default/pods", document)


def make_schedulable(lab: Lab) -> None:
    status = {
        "allocatable": {"nvidia.com/gpu": "7"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    lab.client.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})


def live(lab: Lab, extender: Extender, pod: dict[str, Any]) -> None:
    """A Pod's whole life: refused where nobody is, held, bound, allocated, over."""
    for _ in range(3):
        assert not extender.filter(pod, "elsewhere")["NodeNames"]
    wait_until(lambda: extender.filter(pod, NODE)["NodeNames"], "the node takes it", 20)
    assert extender.bind(pod, NODE) == ""
    lab.kubelet.allocate(lab.ids()[0])
    lab.set_status("job", "Succeeded", "terminated")
    wait_until(lambda: lab.journal() == [], "reclaimed")


@pytest.mark.timeout(120)
def test_one_pod_is_followed_from_the_decision_to_the_end_of_its_instance() -> None:
    with collecting() as spans, open_lab() as lab:
        make_schedulable(lab)
        told = {"HAMI_LOG_FORMAT": "json", "OTEL_EXPORTER_OTLP_ENDPOINT": spans.url}
        with lab.agent_process(**told), extender_of(lab, spans.url) as extender:
            pod = gpu_pod(lab, "job")
            live(lab, extender, pod)
            wait_until(
                lambda: any(e["message"] == "reclaimed instance" for e in entries(lab)), "told"
            )
            wait_until(lambda: "reclaim" in spans.names(), "its last span was sent")
        uid = pod["metadata"]["uid"]
        mine = [entry for entry in entries(lab) if entry.get("pod_uid") == uid]
        assert {entry["pod"] for entry in mine} == {"default/job"}
        steps = [(e["role"], e.get("outcome") or e["message"].split(" took")[0]) for e in mine]
        assert [step for step in steps if step[1] != "refused"] == [
            ("extender", "held"),
            ("extender", "bound"),
            ("node-agent", "realized instance"),
            ("node-agent", "Allocate of 1 MIG device(s)"),
            ("node-agent", "reclaimed instance"),
        ]
        held, bound = (next(e for e in mine if e.get("outcome") == o) for o in ("held", "bound"))
        assert held["request_id"] == bound["request_id"]
        texts = [e["message"] for e in mine if e.get("outcome") == "refused"]
        assert texts
        assert len(texts) == len(set(texts)), "a refusal that repeats is one line"
        refused = [e["request_id"] for e in mine if e.get("outcome") == "refused"]
        assert len({*refused, held["request_id"]}) == len(refused) + 1
        made, served = mine[-3:-1]
        assert made["request_id"] == served["request_id"] != held["request_id"]
        trace = uid.replace("-", "")
        assert spans.of(trace, "hami-extender") >= {"filter", "bind"}
        assert spans.of(trace, "hami-node-agent") >= {
            *("allocate", "making", "nvml create GPU instance", "nvml create compute instance"),
            *("delivering", "recording", "reclaim", "nvml destroy"),
        }
        assert told_by_jq(lab, uid) == [f"{e['role']} {e['message']}" for e in mine]


def told_by_jq(lab: Lab, uid: str) -> list[str]:
    """Role and message of each line that the documented command prints for a Pod."""
    if shutil.which("jq") is None:
        pytest.skip("jq: apt-get install jq; all but the documented command held")
    (program,) = re.findall(r"jq -Rrn --arg uid .* '(\[inputs .*)'$", OPERATIONS.read_text(), re.M)
    logs = "".join((lab.folder / f"{name}.log").read_text() for name in ("agent", "extender"))
    done = subprocess.run(
        ["jq", "-Rrn", "--arg", "uid", uid, program],
        input=f"Traceback of nobody\n{logs}",
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    found = []
    for line in done.stdout.splitlines():
        _, role, rest = line.split(" ", 2)
        found.append(f"{role} {rest.split(' ', 1)[1]}")
    return found


@pytest.fixture
def lines() -> Iterator[StringIO]:
    """What is logged in this process, formatted when and where it is logged."""
    text, root = StringIO(), getLogger()
    handler, level = StreamHandler(text), root.level
    handler.setFormatter(JsonFormatter("worker"))
    root.addHandler(handler)
    root.setLevel(INFO)
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


def logged(lines: StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


@pytest.mark.django_db
def test_the_worker_looks_under_the_id_of_the_request_that_asked(
    lines: StringIO, settings: Any, tmp_path: Path
) -> None:
    run = start_check(Actor("ann", Source.LOCAL, request_id="asked-by-ann"))
    with SimulatedApiServer() as api:
        settings.KUBECONFIG = write_kubeconfig(tmp_path / "kubeconfig", server=api.url)
        assert tasks.check.apply(task_id="of-celery").get() == 1
    (entry,) = (e for e in logged(lines) if e["message"].startswith(f"check {run.pk}:"))
    assert (entry["request_id"], entry["task"]) == ("asked-by-ann", "hami.check")


def test_lines_of_a_task_carry_its_own_id_and_name(lines: StringIO) -> None:
    @app.task(name="test.tell")
    def tell() -> str:
        getLogger("test").warning("inside")
        return current("request_id")

    try:
        assert tell.apply(task_id="of-celery").get() == "of-celery"
    finally:
        app.tasks.pop("test.tell")
    (entry,) = (e for e in logged(lines) if e["message"] == "inside")
    assert (entry["request_id"], entry["task"]) == ("of-celery", "test.tell")
    assert current("request_id") == ""


def test_an_inner_matter_stands_beside_the_outer_one_and_ends_with_it() -> None:
    with about(request_id="1", pod="a/b"):
        with about(pod="c/d"):
            assert (current("request_id"), current("pod")) == ("1", "c/d")
        assert current("pod") == "a/b"
    assert current("pod") == ""
