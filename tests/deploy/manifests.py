"""The manifests in ``deploy/`` that are made from the chart: ``make manifests`` writes them.

The chart is the source. What is here is for those who install without helm, and for
tests that read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.chart import CHART, NAMESPACE, ROOT, render
from tests.deploy.dashboards import DASHBOARDS
from tests.deploy.dashboards.grafana import LANGUAGES, written

DEPLOY = ROOT / "deploy"
FIRST_LINE = "# Made from deploy/helm/hami-web by `make manifests`; change it there.\n"
POSTGRES: dict[str, Any] = {
    "database": {"kind": "postgresql", "existingSecret": "hami-database"},
    "broker": {"kind": "redis", "existingSecret": "hami-broker"},
}
OLD_KUBE, NEW_KUBE = "1.20.2", "1.33.0"
BEFORE_MATCH_CONDITIONS = "1.29.0"
_OF_HELM = re.compile(
    r"^ *(helm\.sh/\S+|app\.kubernetes\.io/(managed-by|version)): .*\n", re.MULTILINE
)
_EMPTY_ANNOTATIONS = re.compile(r"^ *annotations:\n(?=(---|spec:|\w))", re.MULTILINE)


def made() -> dict[Path, str]:
    """Every file that is made, with its text."""
    apart = _by_template(render(POSTGRES, kube=NEW_KUBE))
    files = {
        DEPLOY / "rbac" / f"{role}.yaml": _joined(
            [*_account(apart, role), *apart[f"rbac-{role}.yaml"]]
        )
        for role in ("extender", "kube-scheduler", "node-agent", "setup", "web", "worker")
    }
    with_handover = _by_template(render(POSTGRES | {"handover": {"enabled": True}}, kube=NEW_KUBE))
    files[DEPLOY / "rbac" / "optional" / "handover.yaml"] = _joined(
        with_handover["rbac-handover.yaml"]
    )
    files[DEPLOY / "policies" / "node-agent.yaml"] = _joined(apart["policy-node-agent.yaml"])
    files[DEPLOY / "webhook-match-conditions.yaml"] = _joined(apart["webhook.yaml"])
    older = _by_template(render(kube=BEFORE_MATCH_CONDITIONS))
    files[DEPLOY / "webhook.yaml"] = _joined(older["webhook.yaml"])
    oldest = _by_template(render(kube=OLD_KUBE))
    for name, found in (("kube-scheduler", apart), ("kube-scheduler-1.20", oldest)):
        config = _file_in(found["scheduler-config.yaml"], "config.yaml")
        files[DEPLOY / "scheduler-config" / f"{name}.yaml"] = FIRST_LINE + config
    comment = "".join(re.findall(r"^#.*\n", apart["device-config.yaml"][0], re.MULTILINE))
    allowlist = _file_in(apart["device-config.yaml"], "device-config.yaml")
    files[DEPLOY / "device-config.yaml"] = FIRST_LINE + comment + allowlist
    images = sorted({m for text in apart.values() for m in _images(text)})
    files[DEPLOY / "images.txt"] = "".join(f"{image}\n" for image in images)
    return files | _observability() | _kustomize()


def _observability() -> dict[Path, str]:
    """For those whose Prometheus and Grafana read files; the chart gives the same to both."""
    folder = DEPLOY / "observability"
    rules = sorted((CHART / "files" / "rules").glob("*.yaml"))
    files = {folder / "rules" / path.name: FIRST_LINE + path.read_text() for path in rules}
    for dashboard, language in product(DASHBOARDS, LANGUAGES):
        text = written(dashboard, language)
        for place in (folder, CHART / "files"):
            files[place / "grafana" / language / f"hami-{dashboard.name}.json"] = text
    return files


def _kustomize() -> dict[Path, str]:
    """What both ways to install share is the base; the overlays are what they differ in."""
    folder = DEPLOY / "kustomize"
    variants = {
        "all-in-one": _all(render(kube=NEW_KUBE)),
        "postgres": _all(render(POSTGRES, kube=NEW_KUBE)),
    }
    shared = [d for d in variants["all-in-one"] if d in variants["postgres"]]
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n"
    files = {
        folder / "base" / "namespace.yaml": FIRST_LINE + namespace,
        folder / "base" / "hami-web.yaml": _joined(shared),
        folder / "base" / "kustomization.yaml": _kustomization(["namespace.yaml", "hami-web.yaml"]),
    }
    for name, found in variants.items():
        overlay = folder / "overlays" / name
        files[overlay / "hami-web.yaml"] = _joined([d for d in found if d not in shared])
        files[overlay / "kustomization.yaml"] = _kustomization(["../../base", "hami-web.yaml"])
    return files


def _kustomization(resources: list[str]) -> str:
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    }
    return FIRST_LINE + yaml.safe_dump(document, sort_keys=False)


def _by_template(text: str) -> dict[str, list[str]]:
    """Documents by the template that they come from, without what only helm needs."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^---\n", text, flags=re.MULTILINE):
        source, _, body = part.partition("\n")
        if not source.startswith("# Source: ") or "/tests/" in source:
            continue
        body = _EMPTY_ANNOTATIONS.sub("", _OF_HELM.sub("", body))
        body = re.sub(r"[ \t]+\n", "\n", body).strip("\n") + "\n"
        found.setdefault(source.rpartition("/")[2], []).append(re.sub(r"\n\n+", "\n", body))
    return found


def _all(text: str) -> list[str]:
    return [document for found in _by_template(text).values() for document in found]


def _account(found: Mapping[str, list[str]], role: str) -> list[str]:
    return [d for d in found["service-accounts.yaml"] if f"\n  name: hami-{role}\n" in d]


def _file_in(found: list[str], name: str) -> str:
    (document,) = (yaml.safe_load(text) for text in found)
    return str(document["data"][name]).rstrip("\n") + "\n"


def _images(found: list[str]) -> list[str]:
    return [image for text in found for image in re.findall(r'image: "?([^"\s]+)"?', text)]


def _joined(found: list[str]) -> str:
    return FIRST_LINE + "---\n".join(found)


def main() -> None:
    for path, text in made().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
