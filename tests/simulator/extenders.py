"""An extender whose answers a test decides, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from hami_web.simulator.client import ApiClient, ApiError, Endpoint

Filter = Callable[[dict[str, Any]], dict[str, Any]]


def take_first(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"NodeNames": arguments["NodeNames"][:1]}


def refuse_all(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"FailedNodes": dict.fromkeys(arguments["NodeNames"], "CardMigTopologyInfeasible")}


class ScriptedExtender:
    """Answers /filter with ``decide`` and /bind by a Binding with ``annotations``."""

    def __init__(self, api: Endpoint) -> None:
        self.decide: Filter = take_first
        self.bind_error = ""
        self.annotations: dict[str, str] = {}
        self.filters: list[dict[str, Any]] = []
        self.binds: list[dict[str, Any]] = []
        self.connections = 0
        self._api = ApiClient(api)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                owner.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = json.dumps(getattr(owner, self.path.strip("/"))(body)).encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n"
                self.wfile.write(head.encode() + answer)

            def log_message(self, *args: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def filter(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.filters.append(arguments)
        return self.decide(arguments)

    def bind(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.binds.append(arguments)
        if self.bind_error:
            return {"Error": self.bind_error}
        path = f"/api/v1/namespaces/{arguments['PodNamespace']}/pods/{arguments['PodName']}"
        meta = {"name": arguments["PodName"], "uid": arguments["PodUID"]}
        meta["annotations"] = self.annotations
        body = {"metadata": meta, "target": {"kind": "Node", "name": arguments["Node"]}}
        try:
            self._api.create(f"{path}/binding", body)
        except ApiError as error:
            return {"Error": str(error)}
        return {"Error": ""}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._api.close()
