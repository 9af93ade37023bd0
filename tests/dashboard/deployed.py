"""The web role in a process of its own, below a path, with a database, a node and people."""

from __future__ import annotations

import os
import socket
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

from .test_drawing import REGISTER

ROOT: Final = Path(__file__).parents[2]
BASE: Final = "/tools/gpus"
PASSWORD: Final = "correct horse battery"
PREPARE: Final = """
import django; django.setup()
from django.core.management import call_command
from django.utils import timezone
from hami_web.access.accounts import create_person
from hami_web.access.audit import SYSTEM
from hami_web.access.roles import Role
from hami_web.history.models import Alert
call_command("check", fail_level="WARNING")
call_command("migrate", verbosity=0)
call_command("create_admin")
for name in ("ann", "ben", "eve"):
    user = create_person(name, "correct horse battery", Role.VIEWER, by=SYSTEM)
    user.namespaces = ["team"]
    user.save()
now = timezone.now()
for node in ("n1", "n2"):
    Alert.objects.create(code="AgentStale", subject=node, text="silent", raised_at=now, seen_at=now)
"""


@contextmanager
def deployed(folder: Path, **told: str) -> Iterator[int]:
    """The port of the real process, told ``told`` beside what every one needs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with SimulatedApiServer() as server:
        _make_node(server)
        environment = {
            **os.environ,
            "HAMI_BASE_PATH": BASE,
            "HAMI_WEB_HTTPS": "true",
            "DJANGO_SETTINGS_MODULE": "hami_web.settings",
            "HAMI_KUBECONFIG": str(write_kubeconfig(folder / "kubeconfig", server=server.url)),
            "HAMI_DATA_DIR": str(folder),
            "HAMI_PROXY_ADDRESSES": "127.0.0.0/8",
            "HAMI_SECRET_KEY": "deployed-" + "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
            "HAMI_ADMIN_PASSWORD": PASSWORD,
            **told,
        }
        subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=environment, check=True)
        command = [sys.executable, "manage.py", "web", "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        try:
            _wait(process, port)
            yield port
        finally:
            process.terminate()
            process.wait(20)


def _make_node(server: SimulatedApiServer) -> None:
    client = ApiClient(Endpoint(server.url))
    register = {keys.NODE_REGISTER: REGISTER.read_text().strip()}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    client.create(
        "/api/v1/nodes", {"metadata": {"name": "n1", "annotations": register}, "status": ready}
    )
    client.close()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Until it is ready, as a probe asks: over HTTP, past any proxy, without any path before."""
    deadline = time.monotonic() + 120
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                if answer.status == 200 and answer.url.endswith("/readyz"):
                    return
        except OSError:
            time.sleep(0.1)
