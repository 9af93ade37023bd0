"""Secrets of the control plane's own namespace, and the CA that the API server trusts of us."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from hami_web.cluster.errors import Conflict, MalformedAnswer, NotFound
from hami_web.cluster.transport import Request, Transport

FIELD_MANAGER: Final = "hami-setup"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class SecretView(msgspec.Struct, gc=False):
    """What is in a Secret; values are base64."""

    data: dict[str, str] | None = None


class SecretStore:
    """Reads and writes Secrets of one namespace; raises ClusterError."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport = transport
        self._folder = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets"

    def create(self, name: str, files: Mapping[str, bytes], kind: str = "Opaque") -> bool:
        """Make it; False where one of this name exists, which is left as it is."""
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": kind,
            "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "hami-web"}},
            "data": _encoded(files),
        }
        query = {"fieldManager": FIELD_MANAGER}
        try:
            self._transport.send(Request("POST", self._folder, query=query, body=body))
        except Conflict:
            return False
        return True

    def read(self, name: str) -> dict[str, bytes] | None:
        """Its files; None where there is none. Raises MalformedAnswer for what is no base64."""
        try:
            body = self._transport.send(Request("GET", self._path(name)))
        except NotFound:
            return None
        try:
            view = msgspec.json.decode(body, type=SecretView)
            return {key: base64.b64decode(value) for key, value in (view.data or {}).items()}
        except (msgspec.MsgspecError, binascii.Error) as error:
            raise MalformedAnswer(f"Secret {name}: {error}") from error

    def replace(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write these files of a Secret that exists."""
        self._transport.send(
            Request(
                "PATCH",
                self._path(name),
                query={"fieldManager": FIELD_MANAGER},
                body={"data": _encoded(files)},
                content_type="application/merge-patch+json",
            )
        )

    def _path(self, name: str) -> str:
        return f"{self._folder}/{quote(name, safe='')}"


def trust_webhook(transport: Transport, name: str, entry: str, authority: bytes) -> None:
    """Make the API server trust this CA (PEM) for the first webhook, named ``entry``."""
    at = "/webhooks/0"
    body = [
        {"op": "test", "path": f"{at}/name", "value": entry},
        {
            "op": "add",
            "path": f"{at}/clientConfig/caBundle",
            "value": base64.b64encode(authority).decode(),
        },
    ]
    transport.send(
        Request(
            "PATCH",
            f"{_WEBHOOKS}/{quote(name, safe='')}",
            query={"fieldManager": FIELD_MANAGER},
            body=body,
            content_type="application/json-patch+json",
        )
    )


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(data).decode() for name, data in files.items()}
