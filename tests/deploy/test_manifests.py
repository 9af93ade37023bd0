"""What lies in deploy/ is what the chart renders, and kustomize puts it together whole."""

from __future__ import annotations

import subprocess

import pytest

from tests.deploy.chart import ROOT, documents, rendered
from tests.deploy.manifests import DEPLOY, NEW_KUBE, POSTGRES, made

pytestmark = pytest.mark.usefixtures("helm")


def test_every_manifest_is_as_the_chart_renders_it() -> None:
    for path, text in made().items():
        assert path.read_text() == text, f"{path.relative_to(ROOT)}: make manifests"


def test_nothing_else_lies_among_what_is_made() -> None:
    files = set(made())
    for folder in ("rbac", "policies", "scheduler-config", "kustomize", "observability"):
        present = {path for path in (DEPLOY / folder).rglob("*") if path.is_file()}
        assert present <= files


def test_nobody_may_evict_by_what_is_applied_without_being_named() -> None:
    applied = "".join(path.read_text() for path in (DEPLOY / "rbac").glob("*.yaml"))
    assert "pods/eviction" not in applied
    assert "pods/eviction" in (DEPLOY / "rbac" / "optional" / "handover.yaml").read_text()
    assert not [d for d in rendered({}, kube=NEW_KUBE) if d["metadata"]["name"] == "hami-handover"]


@pytest.mark.parametrize(("overlay", "values"), [("all-in-one", {}), ("postgres", POSTGRES)])
def test_an_overlay_holds_every_object_of_the_chart(
    kubectl: str, overlay: str, values: dict[str, object]
) -> None:
    done = subprocess.run(
        [kubectl, "kustomize", str(DEPLOY / "kustomize" / "overlays" / overlay)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr

    def named(found: list[dict[str, object]]) -> set[tuple[object, ...]]:
        return {(d["kind"], d["metadata"]["name"]) for d in found}  # type: ignore[index]

    expected = {
        (kind, name)
        for kind, name in named(rendered(values, kube=NEW_KUBE))
        if (kind, name) != ("Pod", "hami-test")
    }
    assert named(documents(done.stdout)) == expected | {("Namespace", "hami-system")}
