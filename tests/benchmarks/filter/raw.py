"""The same core and the same server behind a bare WSGI callable: what Django's part costs.

``python -m tests.benchmarks.filter.raw LISTEN THREADS`` serves ``/filter`` alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from hami_web import wsgi
from hami_web.extender import wire
from hami_web.extender.server import ExtenderServer, ServerOptions
from hami_web.scheduling.decisions import Fits
from hami_web.scheduling.runtime import Runtime, RuntimeOptions
from hami_web.settings import KUBECONFIG

StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Bare:
    """Reads the body, asks the core, writes the answer."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if self._runtime.not_ready_because() is not None:
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return []
        call = wire.decode_filter(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        answer = self._runtime.filter(call.pod, call.names)
        assert isinstance(answer, Fits)
        body = wire.encode_fit(call, answer.names)
        length = str(len(body))
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", length)])
        return [body]

    def close(self) -> None:
        self._runtime.stop()


class BareServer(ExtenderServer):
    """The shipped server with the bare callable and gunicorn's own threaded worker."""

    def load_config(self) -> None:
        super().load_config()
        self.cfg.set("worker_class", "gthread")

    def load(self) -> Any:
        runtime = Runtime(RuntimeOptions(kubeconfig=KUBECONFIG))
        runtime.start()
        return Bare(runtime)


if __name__ == "__main__":
    assert wsgi.__name__  # sets Django up, as the shipped server does
    BareServer(ServerOptions(listen=sys.argv[1], threads=int(sys.argv[2]))).run()
