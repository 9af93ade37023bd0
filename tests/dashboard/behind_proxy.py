"""The web role as it is deployed below a path of a host, behind TLS: rows that a browser finds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hami_web.core import annotations as keys
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.access.provider import CLIENT, SECRET

from .test_drawing import REGISTER

ROOT: Final = Path(__file__).parents[2]
BASE: Final = "/tools/gpus"
PASSWORD: Final = "correct horse battery"
PREPARE: Final = """
import django; django.setup()
from django.core.management import call_command
from django.utils import timezone
call_command("migrate", verbosity=0)
call_command("create_admin")
from hami_web.history.models import Alert
now = timezone.now()
for node in ("n1", "n2"):
    Alert.objects.create(code="AgentStale", subject=node, text="silent", raised_at=now, seen_at=now)
"""


def environment(folder: Path, kubeconfig: Path, issuer: str) -> dict[str, str]:
    """What such a deployment is told."""
    policy = folder / "policy.yaml"
    policy.write_text("access: {roleGroups: {viewer: ['*']}}")
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "hami_web.settings",
        "HAMI_KUBECONFIG": str(kubeconfig),
        "HAMI_DATA_DIR": str(folder),
        "HAMI_BASE_PATH": BASE,
        "HAMI_WEB_HTTPS": "true",
        "HAMI_PROXY_ADDRESSES": "127.0.0.0/8",
        "HAMI_SECRET_KEY": "behind-a-proxy-" + "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
        "HAMI_ADMIN_PASSWORD": PASSWORD,
        "HAMI_OIDC_ISSUER": issuer,
        "HAMI_OIDC_CLIENT_ID": CLIENT,
        "HAMI_OIDC_CLIENT_SECRET": SECRET,
        "HAMI_POLICY_FILE": str(policy),
    }


@contextmanager
def deployed(folder: Path, port: int, issuer: str) -> Iterator[None]:
    """The real process, with a node to show."""
    with SimulatedApiServer() as server:
        client = ApiClient(Endpoint(server.url))
        register = {keys.NODE_REGISTER: REGISTER.read_text().strip()}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        meta = {"name": "n1", "annotations": register}
        client.create("/api/v1/nodes", {"metadata": meta, "status": ready})
        client.close()
        told = environment(
            folder, write_kubeconfig(folder / "kubeconfig", server=server.url), issuer
        )
        subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=told, check=True)
        command = [sys.executable, "manage.py", "web", "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, cwd=ROOT, env=told)
        try:
            _wait(process, port)
            yield
        finally:
            process.terminate()
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Until it is ready, as a probe asks: over HTTP, past the proxy, without the base."""
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                if answer.status == 200 and answer.url.endswith("/readyz"):
                    return
        except OSError:
            time.sleep(0.1)
