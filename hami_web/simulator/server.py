"""The simulated API server: real HTTP/1.1 on loopback, one thread for each connection."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from hami_web.simulator.api import Api, AuditEntry
from hami_web.simulator.documents import encode
from hami_web.simulator.faults import Faults
from hami_web.simulator.http_edge import Edge, HttpServer
from hami_web.simulator.identity import Identities
from hami_web.simulator.requests import ApiRequest, parse_request

NAMESPACES = ("default", "kube-system", "kube-node-lease", "kube-public", "hami-system")


class SimulatedApiServer:
    """Starts serving on entry of its context (or :meth:`start`) and leaves nothing behind.

    ``services`` maps (namespace, name) of a Service to the base URL that webhooks of that service
    are called at. Port 0 takes a free one.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        identities: Identities | None = None,
        services: dict[tuple[str, str], str] | None = None,
    ) -> None:
        self.faults = Faults()
        self.identities = identities or Identities()
        self.api = Api(services if services is not None else {}, self.identities)
        self._stopping = threading.Event()
        edge = Edge(self.api, self.faults, self._stopping)
        self._http = HttpServer(("127.0.0.1", port), edge)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.02,), name="simulated-api"
        )
        for name in NAMESPACES:
            self._seed_namespace(name)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """Where clients reach it, such as ``http://127.0.0.1:41234``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def audit(self) -> tuple[AuditEntry, ...]:
        """The authenticated requests so far, of very many the newest."""
        return self.api.audit

    def compact(self) -> None:
        """Forget all history: watches from older versions and page tokens get 410."""
        self.api.store.compact()
        self.api.lists.expire_tokens()

    def close_connections(self) -> None:
        """Cut every open connection, as a server that restarts does."""
        self._http.close_connections()

    def start(self) -> Self:
        """Begin to serve; returns itself."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End all watches and connections, and wait for their threads."""
        self._stopping.set()
        if self._thread.ident is not None:  # else it never served, and shutdown would wait for ever
            self._http.shutdown()
            self._thread.join()
        self.api.store.wake()
        self._http.close_connections()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _seed_namespace(self, name: str) -> None:
        request = parse_request("POST", "/api/v1/namespaces")
        body = {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}
        self.api.respond(
            ApiRequest(request.address, request.verb, {}, "application/json", encode(body))
        )


def write_kubeconfig(path: Path, *, server: str, token: str = "") -> Path:
    """A kubeconfig for a server's URL and bearer token; returns ``path``."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simulated", "cluster": {"server": server}}],
        "users": [{"name": "simulated", "user": {"token": token} if token else {}}],
        "contexts": [
            {"name": "simulated", "context": {"cluster": "simulated", "user": "simulated"}}
        ],
        "current-context": "simulated",
    }
    path.write_text(json.dumps(config, indent=1))
    path.chmod(0o600)
    return path
