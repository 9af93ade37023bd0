"""A release on a real API server: installed, set up, upgraded, rolled back, removed."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart import CHART, NAMESPACE, ROOT
from tests.deploy.manifests import POSTGRES

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


class Release:
    """Speaks to one API server by helm and kubectl."""

    def __init__(self, helm: str, kubectl: str, folder: Path) -> None:
        self.folder = folder
        self._helm, self._kubectl = helm, kubectl
        self._access = ["--kubeconfig", str(folder / "kube" / "admin.conf")]

    def helm(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        more = []
        if values is not None:
            path = self.folder / "values.yaml"
            path.write_text(yaml.safe_dump(dict(values)))
            more = ["-f", str(path)]
        if arguments[0] != "uninstall":
            # The server's own merge is a beta before 1.22, and loses containers on the way back.
            more.append("--server-side=false")
        return self._run(self._helm, *arguments, "-n", NAMESPACE, *more)

    def get(self, *what: str) -> Any:
        """Objects as the API server has them; None for one that is not there."""
        text = self._run(self._kubectl, "get", *what, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def kubectl(self, *arguments: str) -> str:
        return self._run(self._kubectl, *arguments)

    def set_up(self) -> None:
        """What the Job of the release does, with the Job's own arguments and account."""
        (job,) = self.get("jobs", "-n", NAMESPACE)["items"]
        (container,) = job["spec"]["template"]["spec"]["containers"]
        account = job["spec"]["template"]["spec"]["serviceAccountName"]
        token = self.kubectl("create", "token", account, "-n", NAMESPACE).strip()
        access = yaml.safe_load((self.folder / "kube" / "nobody.conf").read_text())
        access["users"][0]["user"] = {"token": token}
        path = self.folder / "setup.conf"
        path.write_text(yaml.safe_dump(access))
        environ = {v["name"]: v["value"] for v in container["env"]} | {"HAMI_KUBECONFIG": str(path)}
        command = [sys.executable, "manage.py", *container["command"][1:], *container["args"]]
        done = subprocess.run(
            command, check=False, cwd=ROOT, env=os.environ | environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def secrets(self) -> dict[str, Any]:
        """Data of the Secrets that set-up makes, by name."""
        found = self.get("secrets", "-n", NAMESPACE)["items"]
        return {
            s["metadata"]["name"]: s["data"]
            for s in found
            if s["metadata"]["name"].startswith("hami-") and "-token-" not in s["metadata"]["name"]
        }

    def trusted(self) -> str | None:
        """The CA bundle of the webhook."""
        webhook = self.get("mutatingwebhookconfigurations", "hami-webhook")
        bundle: str | None = webhook["webhooks"][0]["clientConfig"].get("caBundle")
        return bundle

    def _run(self, program: str, *arguments: str) -> str:
        command = [program, *arguments, *self._access]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def release(helm: str, kubectl: str) -> Iterator[Release]:
    kube = os.environ.get("HAMI_TEST_KUBE")
    if not kube:
        pytest.skip("needs a real Kubernetes: HAMI_TEST_KUBE")
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with tempfile.TemporaryDirectory(prefix="hami-release-") as folder:
        directory = Path(folder) / "kube"
        try:
            with (Path(folder) / "log").open("ab") as output:
                subprocess.run(
                    [f"{kube}/up.sh", "--dir", directory, "--control-plane-only"],
                    check=True,
                    stdout=output,
                    stderr=output,
                    timeout=1500,
                )
            found = Release(helm, kubectl, Path(folder))
            found.kubectl("create", "namespace", NAMESPACE)
            yield found
        finally:
            subprocess.run([f"{kube}/down.sh", directory], check=False, timeout=120)


def test_a_release_lives_on_a_real_api_server(release: Release) -> None:
    release.helm("install", "hami", str(CHART), values={"worker": {"historyDays": 30}})
    assert release.trusted() is None

    release.set_up()
    made = release.secrets()
    assert set(made) == {
        "hami-admin",
        "hami-ca",
        "hami-extender-tls",
        "hami-secret-key",
        "hami-signing-keys",
    }
    authority = release.trusted()
    assert authority == made["hami-ca"]["ca.crt"]
    assert base64.b64decode(authority).startswith(b"-----BEGIN CERTIFICATE-----")
    first = release.get("deployments", "-n", NAMESPACE, "hami-web")["spec"]["template"]

    release.helm("upgrade", "hami", str(CHART), values=POSTGRES | {"scheduler": {"replicas": 2}})
    assert release.get("deployments", "-n", NAMESPACE, "hami-worker") is not None
    assert release.get("deployments", "-n", NAMESPACE, "hami-extender")["spec"]["replicas"] == 2
    assert release.trusted() == authority
    release.set_up()
    assert release.secrets() == made

    release.helm("rollback", "hami", "1")
    assert release.get("deployments", "-n", NAMESPACE, "hami-worker") is None
    assert release.get("deployments", "-n", NAMESPACE, "hami-web")["spec"]["template"] == first
    assert release.trusted() == authority
    assert release.secrets() == made

    release.helm("uninstall", "hami")
    deadline = time.monotonic() + 30
    while release.get("deployments", "-n", NAMESPACE) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert release.get("clusterroles", "hami-extender") is None
    assert release.get("mutatingwebhookconfigurations", "hami-webhook") is None
    assert release.secrets() == made
    assert release.get("pvc", "-n", NAMESPACE, "hami-data") is not None
