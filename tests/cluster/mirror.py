"""Web and worker of the suite, beside its cluster."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml

from hami_web.access.roles import Role
from tests.cluster.lab import Lab
from tests.cluster.processes import Process, free_port, wait_until

PERSON = "nobody-token"


class Mirror:
    """Web and worker on a SQLite file of their own, each with its account.

    Everybody who signs in has the role; ``more`` are variables of both.
    """

    def __init__(self, lab: Lab, folder: Path, role: Role, **more: str) -> None:
        self.port = free_port()
        policy = folder / "policy.yaml"
        policy.write_text(yaml.safe_dump({"access": {"roleGroups": {role.value: ["*"]}}}))
        shared = {
            "DJANGO_SETTINGS_MODULE": "hami_web.settings",
            "HAMI_DATA_DIR": str(folder / "data"),
            "HAMI_POLICY_FILE": str(policy),
            "HAMI_SECRET_KEY": "of this test only",
            "HAMI_EXTENDER_URL": f"https://localhost:{lab.port}",
            "HAMI_EXTENDER_CA": str(lab.directory / "pki" / "ca.crt"),
            "HAMI_SIGNING_KEYS": str(lab.work / "signing-keys"),
            "HAMI_RECONCILE_SECONDS": "2",
            **more,
        }
        self.worker = Process(
            "worker",
            [sys.executable, "manage.py", "worker", "--migrate"],
            shared | {"HAMI_KUBECONFIG": str(lab.access("worker"))},
            folder / "worker.log",
        )
        self.web = Process(
            "web",
            [sys.executable, "manage.py", "web"],
            shared
            | {
                "HAMI_KUBECONFIG": str(lab.access("web")),
                "HAMI_WEB_LISTEN": f"127.0.0.1:{self.port}",
                "HAMI_KUBERNETES_LOGIN": "true",
            },
            folder / "web.log",
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        self.worker.start()
        self.web.start()
        try:
            wait_until("the web role is ready", self._is_ready, 90)
            yield
        except BaseException:
            print(self.worker.tail(), self.web.tail())
            raise
        finally:
            self.web.stop()
            self.worker.stop()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {PERSON}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def _is_ready(self) -> bool:
        try:
            return self.call("GET", "/api/v1/nodes")[0] == 200
        except OSError:
            return False
