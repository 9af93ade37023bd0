"""The control plane's API client; the only module that imports ``kubernetes``."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar, cast
from urllib.parse import quote

import msgspec
import urllib3
from kubernetes import client as official
from kubernetes import config as official_config
from kubernetes.config.config_exception import ConfigException

from hami_web.cluster.errors import (
    Conflict,
    InvalidConfiguration,
    MalformedAnswer,
    Rejected,
    Unauthorized,
)
from hami_web.cluster.ports import Annotations, Binding, EventDocument, LeaseSpec
from hami_web.cluster.transport import Priority, Request, Transport
from hami_web.cluster.views import LeaseView, NodeView, PodView
from hami_web.cluster.webhook_views import WebhookView

FIELD_MANAGER = "hami-scheduler"
MERGE_PATCH = "application/merge-patch+json"
POOL_CONNECTIONS = 64
"""Connections kept; more threads than that would open and close extra ones."""
SOCKET_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    # A peer that vanished is found out within 60 s even where no read is waiting.
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_View = TypeVar("_View")


class OfficialConnection:
    """Address, TLS and credentials from a kubeconfig or the Pod's ServiceAccount.

    Tokens are read again as they rotate: the official client's hook does it once a minute for a
    ServiceAccount, and :meth:`renew` whenever the API server refuses one.
    """

    def __init__(self, kubeconfig: Path | None = None, *, context: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._renewing = threading.Lock()
        configuration = self._load()
        configuration.connection_pool_maxsize = POOL_CONNECTIONS
        configuration.socket_options = list(SOCKET_OPTIONS)
        self._credentials = configuration
        self._host = str(configuration.host).rstrip("/")
        self._client = official.ApiClient(configuration)

    @property
    def host(self) -> str:
        return self._host

    @property
    def pool(self) -> urllib3.PoolManager:
        pool = self._client.rest_client.pool_manager
        assert isinstance(pool, urllib3.PoolManager)  # noqa: S101  # narrows an untyped library
        return pool

    def auth_headers(self) -> Mapping[str, str]:
        try:
            found = self._credentials.auth_settings()
        except (ConfigException, OSError) as error:
            raise Unauthorized(f"{self._where}: its token cannot be read: {error}") from error
        settings = cast(Mapping[str, Mapping[str, object]], found)
        return {str(s["key"]): str(s["value"]) for s in settings.values() if s.get("value")}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Read the credentials anew; True when they differ from those that were refused."""
        with self._renewing:
            if dict(self.auth_headers()) != dict(refused):
                return True  # someone else was here before
            try:
                self._credentials = self._load()
            except InvalidConfiguration:
                return False
            return dict(self.auth_headers()) != dict(refused)

    @property
    def _where(self) -> str:
        return "the Pod's ServiceAccount" if self._kubeconfig is None else str(self._kubeconfig)

    def _load(self) -> official.Configuration:
        configuration = official.Configuration()
        try:
            if self._kubeconfig is None:
                official_config.load_incluster_config(configuration)
            else:
                official_config.load_kube_config(
                    str(self._kubeconfig),
                    context=self._context,
                    client_configuration=configuration,
                    persist_config=False,
                )
        except (ConfigException, OSError) as error:
            raise InvalidConfiguration(
                f"Kubernetes configuration from {self._where}: {error}"
            ) from error
        return configuration

    def close(self) -> None:
        """Close the pooled connections."""
        self.pool.clear()


class KubernetesClient:
    """Typed calls of the control plane; implements the protocols of ``cluster.ports``."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get_pod(self, namespace: str, name: str) -> PodView:
        return _decode(self._transport.send(Request("GET", _pod_path(namespace, name))), PodView)

    def get_node(self, name: str) -> NodeView:
        return _decode(self._transport.send(Request("GET", _node_path(name))), NodeView)

    def bind(self, binding: Binding) -> None:
        """Bind with annotations. The 2xx body is a Status and of no interest."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": binding.name,
                "namespace": binding.namespace,
                "uid": binding.uid,
                "annotations": dict(binding.annotations),
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
        path = f"{_pod_path(binding.namespace, binding.name)}/binding"
        query = {"fieldManager": FIELD_MANAGER}
        self._transport.send(Request("POST", path, query=query, body=body))

    def annotate_node(self, node: NodeView, annotations: Annotations) -> NodeView:
        """Merge-patch annotations under the node's resource version; return the new node."""
        metadata = {
            "resourceVersion": node.metadata.resource_version,
            "annotations": dict(annotations),
        }
        return _decode(self._patch(_node_path(node.name), metadata), NodeView)

    def annotate_pod(self, pod: PodView, annotations: Annotations) -> None:
        """Merge-patch annotations of exactly this Pod."""
        metadata = {"uid": pod.uid, "annotations": dict(annotations)}
        try:
            path = _pod_path(pod.metadata.namespace, pod.metadata.name)
            self._patch(path, metadata, Priority.HOUSEKEEPING)
        except Rejected as error:
            # The API server calls another Pod's UID an attempt to change an immutable field.
            if error.status == 422 and "metadata.uid" in str(error):
                raise Conflict(str(error), error.status) from error
            raise

    def label_pod(self, namespace: str, name: str, labels: Annotations) -> None:
        """Merge-patch labels of a Pod of the control plane itself."""
        self._patch(_pod_path(namespace, name), {"labels": dict(labels)})

    def get_lease(self, namespace: str, name: str) -> LeaseView:
        return _decode(
            self._transport.send(Request("GET", _lease_path(namespace, name))), LeaseView
        )

    def create_lease(self, namespace: str, name: str, spec: LeaseSpec) -> LeaseView:
        """Create; Conflict when it exists."""
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec.document(),
        }
        query = {"fieldManager": FIELD_MANAGER}
        request = Request("POST", _lease_path(namespace), query=query, body=body)
        return _decode(self._transport.send(request), LeaseView)

    def patch_lease(self, lease: LeaseView, spec: LeaseSpec) -> LeaseView:
        """Merge-patch under the Lease's resource version: Conflict if anyone wrote since."""
        meta = lease.metadata
        body = {
            "metadata": {"resourceVersion": meta.resource_version},
            "spec": spec.document(),
        }
        return _decode(self._send_patch(_lease_path(meta.namespace, meta.name), body), LeaseView)

    def get_webhook(self, name: str) -> WebhookView:
        path = f"{_WEBHOOKS}/{quote(name, safe='')}"
        return _decode(self._transport.send(Request("GET", path)), WebhookView)

    def create_event(self, event: EventDocument) -> None:
        """POST an ``events.k8s.io/v1`` Event."""
        path = f"/apis/events.k8s.io/v1/namespaces/{quote(event.namespace, safe='')}/events"
        self._transport.send(
            Request("POST", path, body=event.document, priority=Priority.HOUSEKEEPING)
        )

    def patch_event(self, event: EventDocument) -> None:
        """Merge-patch an Event that we created."""
        path = (
            f"/apis/events.k8s.io/v1/namespaces/{quote(event.namespace, safe='')}/events/"
            f"{quote(event.name, safe='')}"
        )
        self._send_patch(path, event.document, Priority.HOUSEKEEPING)

    def _patch(
        self, path: str, metadata: Mapping[str, object], priority: Priority = Priority.URGENT
    ) -> bytes:
        return self._send_patch(path, {"metadata": metadata}, priority)

    def _send_patch(
        self, path: str, body: Mapping[str, object], priority: Priority = Priority.URGENT
    ) -> bytes:
        return self._transport.send(
            Request(
                "PATCH",
                path,
                query={"fieldManager": FIELD_MANAGER},
                body=body,
                content_type=MERGE_PATCH,
                priority=priority,
            )
        )


def _decode(body: bytes, view: type[_View]) -> _View:
    try:
        return msgspec.json.decode(body, type=view)
    except msgspec.MsgspecError as error:
        raise MalformedAnswer(f"{view.__name__}: {error}") from error


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _node_path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"


def _lease_path(namespace: str, name: str = "") -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
    return f"{path}/{quote(name, safe='')}" if name else path
