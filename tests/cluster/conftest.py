"""Fixtures of the end-to-end suite; it is skipped, with the reason, where there is no cluster."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from tests.cluster import pods
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import NAMESPACE, Lab
from tests.cluster.processes import Process, free_port, wait_until


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Last in any order: what a cluster needs from the machine slows all others."""
    for item in items:
        if _is_here(item):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(480))
    items.sort(key=_is_here)


def _is_here(item: pytest.Item) -> bool:
    return item.path.is_relative_to(Path(__file__).parent)


@pytest.fixture(scope="package")
def lab() -> Iterator[Lab | InstalledCluster]:
    work = Path(tempfile.mkdtemp(prefix="hami-lab-"))
    cluster = _cluster(work)
    try:
        cluster.up()
        yield cluster
    except Exception:
        print(cluster.diagnosis())
        raise
    finally:
        cluster.down()
        shutil.rmtree(work, ignore_errors=True)


def _cluster(work: Path) -> Lab | InstalledCluster:
    kubeconfig = os.environ.get("HAMI_TEST_KUBECONFIG")
    if kubeconfig:
        return InstalledCluster(kubeconfig)
    kube = os.environ.get("HAMI_TEST_KUBE")
    if not kube:
        pytest.skip("needs a real Kubernetes: HAMI_TEST_KUBE or HAMI_TEST_KUBECONFIG")
    if os.geteuid() != 0:
        pytest.skip("needs root for containerd and the kubelet")
    return Lab(Path(kube).resolve(), work)


@pytest.fixture
def a100(lab: Lab | InstalledCluster) -> str:
    """UUID of an A100-SXM4-40GB; the tests that use it count its memory slices."""
    for gpu in lab.published():
        if "A100-SXM4-40GB" in gpu["type"]:
            return str(gpu["id"])
    pytest.skip("needs a node with an A100-SXM4-40GB")


@pytest.fixture(autouse=True)
def clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test begins on a node that offers all its devices, and ends without Pods and instances.

    The kubelet writes a node's allocatable after it is told of the devices, so a node offers none
    for a while after its agent or its kubelet was restarted by the test before.
    """
    if "lab" not in request.fixturenames:
        yield
        return
    lab: Lab | InstalledCluster = request.getfixturevalue("lab")
    wait_until("the kubelet offers what is published", lab.offers_all)
    yield
    api = client.CoreV1Api()
    for pod in api.list_namespaced_pod(NAMESPACE).items:
        if pod.metadata.owner_references is None:
            pods.delete(pod.metadata.name, grace=0)
    wait_until("all Pods are gone", lambda: not api.list_namespaced_pod(NAMESPACE).items)
    wait_until("all instances are gone", lambda: not lab.instances())


@pytest.fixture
def standby(lab: Lab) -> Iterator[Process]:
    """A second replica behind the same Service; the first leads again afterwards."""
    port = free_port()
    replica = lab.replica("extender-b", port)
    replica.start()
    lab.service.ports.append(port)
    wait_until("the standby is up", lambda: lab.answers(port, "/readyz?standby=ok"))
    yield replica
    if not lab.extender.runs:
        lab.extender.start()
        wait_until("it is up", lambda: lab.answers(lab.port, "/readyz?standby=ok"))
    replica.stop()
    lab.service.ports.remove(port)
    wait_until("the first leads again", lambda: lab.answers(lab.port, "/readyz"), 30)
    wait_until("and is reached", lambda: lab.answers(lab.service.port, "/readyz"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.failed and isinstance(lab, (Lab, InstalledCluster)):
        report.sections.append(("product", lab.diagnosis()))
