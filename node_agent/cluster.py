"""The agent's Kubernetes adapter: the official client for configuration and transport only.

Every call has a time limit. Answers are decoded with the standard library into the few fields the
agent decides on; an answer that lacks one of them is refused whole.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar
from urllib.parse import quote, urlencode

import urllib3
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

from hami_web.core.errors import InvalidField
from node_agent import decoding
from node_agent.errors import ClusterConflict, ClusterError, ClusterMalformed, ClusterNotFound
from node_agent.latest import Latest
from node_agent.pods import ObservedNode, ObservedPod, PodList

logger = logging.getLogger(__name__)

_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_PAGE: Final = 500
_WATCH_SECONDS: Final = 240
_WATCH_SLACK_SECONDS: Final = 15.0
_PAGES_MOST: Final = 1000

Patch = Mapping[str, str | None]
Decoded = TypeVar("Decoded")


@dataclass(frozen=True, slots=True)
class _Content:
    """What is sent, and the media type that says what it means."""

    media: str
    body: bytes


class Stream(Protocol):
    """A running watch that another thread can end."""

    def lines(self) -> Iterator[bytes]:
        """The events, one JSON document each."""

    def end(self) -> None:
        """Make ``lines`` finish soon; safe to call twice and from any thread."""


class Cluster:
    """What the agent may ask of one API server, as one node's agent. Thread-safe."""

    def __init__(self, api: kubernetes_client.ApiClient, node: str, timeout_seconds: float) -> None:
        self._configuration = api.configuration
        self._pool = api.rest_client.pool_manager
        self._node = node
        self._timeout = timeout_seconds
        self.latest_node = Latest(self._read_node)
        self.latest_pods = Latest(lambda: self._list(f"spec.nodeName={node}"))

    def node(self) -> ObservedNode:
        """This agent's node. Raises :class:`ClusterNotFound` when there is none of this name."""
        return self.latest_node.read()

    def _read_node(self) -> ObservedNode:
        path = f"/api/v1/nodes/{quote(self._node, safe='')}"
        return _decoded(decoding.node, self._json("GET", path))

    def patch_node(self, annotations: Patch, resource_version: str | None = None) -> ObservedNode:
        """Merge annotations into the node; with a version, only if it is still that one."""
        path = f"/api/v1/nodes/{quote(self._node, safe='')}"
        body = _patch_body(annotations, {}, resource_version)
        return _decoded(decoding.node, self._json("PATCH", path, body=body))

    def pod(self, namespace: str, name: str) -> ObservedPod | None:
        """One Pod as it is now, or None when there is none of this name."""
        try:
            return _decoded(decoding.pod, self._json("GET", _pod_path(namespace, name)))
        except ClusterNotFound:
            return None

    def patch_pod(
        self, pod: ObservedPod, annotations: Patch, labels: Patch | None = None
    ) -> ObservedPod:
        """Merge into a Pod if it is still as given. Raises :class:`ClusterConflict` otherwise."""
        body = _patch_body(annotations, labels or {}, pod.resource_version)
        path = _pod_path(pod.namespace, pod.name)
        return _decoded(decoding.pod, self._json("PATCH", path, body=body))

    def pods(self) -> PodList:
        """All Pods of the node, every page of them. Raises :class:`ClusterError` otherwise."""
        return self.latest_pods.read()

    def pending_pods(self) -> tuple[ObservedPod, ...]:
        """The node's Pods of phase Pending."""
        return self._list(f"spec.nodeName={self._node},status.phase=Pending").pods

    def _list(self, selector: str) -> PodList:
        found: list[ObservedPod] = []
        token = ""
        for _page in range(_PAGES_MOST):
            query = {"fieldSelector": selector, "limit": str(_PAGE)}
            if token:
                query["continue"] = token
            page = _decoded(decoding.pod_page, self._json("GET", "/api/v1/pods", query))
            found.extend(page.pods)
            token = page.continue_token
            if not token:
                return PodList(tuple(found), page.resource_version)
        raise ClusterMalformed(200, f"the list of Pods has more than {_PAGES_MOST} pages")

    def watch_pods(self, resource_version: str) -> Stream:
        """Changes of the node's Pods after a version. The caller must end the stream."""
        query = {
            "fieldSelector": f"spec.nodeName={self._node}",
            "resourceVersion": resource_version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        timeout = urllib3.Timeout(connect=self._timeout, read=_WATCH_SECONDS + _WATCH_SLACK_SECONDS)
        return _HttpStream(self._request("GET", "/api/v1/pods", query, None, timeout))

    def create(self, path: str, document: Mapping[str, object]) -> None:
        """Create one object in the collection at ``path``. Raises :class:`ClusterError`."""
        self._json("POST", path, body=document, media="application/json")

    def patch(self, path: str, document: Mapping[str, object]) -> None:
        """Merge into the object at ``path``; lists with keys are merged by their keys.

        Raises :class:`ClusterNotFound` when there is none.
        """
        self._json("PATCH", path, body=document, media=_STRATEGIC_PATCH)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        media: str = _MERGE_PATCH,
    ) -> object:
        content = None if body is None else _Content(media, json.dumps(body).encode())
        timeout = urllib3.Timeout(connect=self._timeout, read=self._timeout)
        response = self._request(method, path, query, content, timeout)
        try:
            return json.loads(response.read())
        except (ValueError, RecursionError, urllib3.exceptions.HTTPError) as error:
            raise ClusterError(0, f"{method} {path}: unusable answer: {error}") from error
        finally:
            response.release_conn()

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: _Content | None,
        timeout: urllib3.Timeout,
    ) -> urllib3.BaseHTTPResponse:
        url = self._configuration.host + path + (f"?{urlencode(query)}" if query else "")
        headers = self._headers()
        if content is not None:
            headers["Content-Type"] = content.media
        try:
            response: urllib3.BaseHTTPResponse = self._pool.request(
                method,
                url,
                body=None if content is None else content.body,
                headers=headers,
                timeout=timeout,
                preload_content=False,
                retries=urllib3.Retry(
                    connect=1,
                    read=1 if content is None else 0,
                    redirect=0,
                    respect_retry_after_header=False,
                ),
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ClusterError(0, f"{method} {path}: no answer: {error}") from error
        if response.status >= 300:
            raise _failure(method, path, response)
        return response

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "hami-node-agent"}
        for setting in self._configuration.auth_settings().values():
            if setting.get("in") == "header" and setting.get("value"):
                headers[setting["key"]] = setting["value"]
        return headers


class _HttpStream:
    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def lines(self) -> Iterator[bytes]:
        pending = b""
        try:
            while chunk := self._response.read1(1 << 16):
                *complete, pending = (pending + chunk).split(b"\n")
                yield from (line for line in complete if line.strip())
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ClusterError(0, f"the watch of Pods ended: {error}") from error
        finally:
            self._response.close()

    def end(self) -> None:
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError) as error:
            logger.debug("the watch had ended already: %s", error)


def connect(node: str, kubeconfig: Path | None, timeout_seconds: float) -> Cluster:
    """Configure from a kubeconfig file, or from the Pod's service account without one.

    Raises :class:`ClusterError` that says which of the two is missing.
    """
    configuration = kubernetes_client.Configuration()
    try:
        if kubeconfig is None:
            kubernetes_config.load_incluster_config(client_configuration=configuration)
        else:
            kubernetes_config.load_kube_config(
                config_file=str(kubeconfig), client_configuration=configuration
            )
    except (kubernetes_config.ConfigException, OSError, ValueError) as error:
        source = f"kubeconfig {kubeconfig}" if kubeconfig else "the Pod's service account"
        raise ClusterError(0, f"no access to Kubernetes by {source}: {error}") from error
    return Cluster(kubernetes_client.ApiClient(configuration), node, timeout_seconds)


def _decoded(decode: Callable[[object], Decoded], document: object) -> Decoded:
    try:
        return decode(document)
    except InvalidField as error:
        raise ClusterMalformed(200, f"unusable answer of the API server: {error}") from error


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _patch_body(
    annotations: Patch, labels: Patch, resource_version: str | None
) -> Mapping[str, object]:
    metadata: dict[str, object] = {}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if labels:
        metadata["labels"] = dict(labels)
    if resource_version is not None:
        metadata["resourceVersion"] = resource_version
    return {"metadata": metadata}


def _failure(method: str, path: str, response: urllib3.BaseHTTPResponse) -> ClusterError:
    try:
        text = response.read().decode(errors="replace")
    except (urllib3.exceptions.HTTPError, OSError) as error:
        text = str(error)
    finally:
        response.release_conn()
    try:
        message = str(json.loads(text).get("message", text))
    except (ValueError, AttributeError):
        message = text
    error_type = {404: ClusterNotFound, 409: ClusterConflict}.get(response.status, ClusterError)
    return error_type(response.status, f"{method} {path}: {response.status} {message[:300]}")
