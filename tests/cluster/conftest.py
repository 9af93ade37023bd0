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
from tests.cluster.lab import Lab, wait_until


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(240))


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    kube = os.environ.get("HAMI_TEST_KUBE")
    if not kube:
        pytest.skip("needs a real Kubernetes: set HAMI_TEST_KUBE to a folder with up.sh")
    if os.geteuid() != 0:
        pytest.skip("needs root for containerd and the kubelet")
    work = Path(tempfile.mkdtemp(prefix="hami-lab-"))
    lab = Lab(Path(kube).resolve(), work)
    try:
        lab.up()
        yield lab
    except Exception:
        print(lab.diagnosis())
        raise
    finally:
        lab.down()
        shutil.rmtree(work, ignore_errors=True)


@pytest.fixture(autouse=True)
def clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test starts and ends without Pods and without instances."""
    if "lab" not in request.fixturenames:
        yield
        return
    lab: Lab = request.getfixturevalue("lab")
    yield
    for pod in client.CoreV1Api().list_namespaced_pod(pods.NAMESPACE).items:
        if pod.metadata.owner_references is None:
            pods.delete(pod.metadata.name, grace=0)
    wait_until(
        "all Pods are gone",
        lambda: not client.CoreV1Api().list_namespaced_pod(pods.NAMESPACE).items,
    )
    wait_until("all instances are gone", lambda: not instances(lab))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.failed and isinstance(lab, Lab):
        report.sections.append(("product", lab.diagnosis()))


def instances(lab: Lab) -> dict[tuple[str, int, int], str]:
    """What exists on the hardware: (GPU, start, size) to the MIG UUID, "" without a CI."""
    found: dict[tuple[str, int, int], str] = {}
    for gpu in lab.node.state().gpus:
        for instance in gpu.instances:
            uuids = [ci.mig_uuid for ci in instance.compute_instances]
            found[gpu.uuid, instance.start, instance.size] = ",".join(uuids)
    return found
