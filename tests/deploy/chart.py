"""The chart as helm renders it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "hami-web"
NAMESPACE = "hami-system"
NEWEST = "1.37.1"


def program(name: str) -> str | None:
    """Where helm or kubectl is: beside the interpreter, else on the path."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


class Refused(Exception):
    """What helm says of values that it does not take."""


def render(
    values: Mapping[str, Any] | None = None,
    *,
    kube: str = NEWEST,
    namespace: str = NAMESPACE,
    notes: bool = False,
) -> str:
    """The text of all manifests; raises Refused."""
    helm = program("helm")
    assert helm is not None
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(dict(values or {}), file)
        file.flush()
        command = [helm, "template", "hami", str(CHART), "-n", namespace, "-f", file.name]
        if notes:
            command = [helm, "install", "hami", str(CHART), "-n", namespace, "-f", file.name]
            command += ["--dry-run=client"]
        else:
            command += ["--kube-version", kube]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def rendered(values: Mapping[str, Any] | None = None, *, kube: str = NEWEST) -> list[Any]:
    return documents(render(values, kube=kube))


def of_kind(found: list[Any], kind: str) -> dict[str, Any]:
    """Objects of a kind by name."""
    return {d["metadata"]["name"]: d for d in found if d["kind"] == kind}


def pod_templates(found: list[Any]) -> dict[str, Any]:
    """Pod specs by the name of what runs them."""
    specs = {}
    for document in found:
        name, spec = document["metadata"]["name"], document.get("spec", {})
        match document["kind"]:
            case "Deployment" | "DaemonSet" | "Job":
                specs[f"{document['kind']}/{name}"] = spec["template"]["spec"]
            case "CronJob":
                specs[f"CronJob/{name}"] = spec["jobTemplate"]["spec"]["template"]["spec"]
            case "Pod":
                specs[f"Pod/{name}"] = spec
    return specs


def containers(found: list[Any]) -> dict[str, Any]:
    """Containers, init containers too, by ``Kind/name/container``."""
    return {
        f"{owner}/{container['name']}": container
        for owner, spec in pod_templates(found).items()
        for container in [*spec.get("initContainers", []), *spec["containers"]]
    }
