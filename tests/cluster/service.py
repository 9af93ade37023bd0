"""What a Service in front of the extender's replicas does: new connections go to one of them."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import Counter
from collections.abc import Callable


class Service:
    """Forwards TCP connections to the ready one of its ports; looks at most every 0.1 s.

    ``is_ready`` may be replaced while it runs. ``connections`` counts what was forwarded, by port;
    ``chosen`` is where new ones go.
    """

    def __init__(self, port: int, is_ready: Callable[[int], bool], *ports: int) -> None:
        self.port = port
        self.ports = list(ports)
        self.is_ready = is_ready
        self.connections: Counter[int] = Counter()
        self.chosen = ports[0]
        self._stopped = threading.Event()
        self._listener: socket.socket | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        for target in (self._accept, self._look):
            thread = threading.Thread(target=target, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stopped.set()
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _look(self) -> None:
        while not self._stopped.wait(0.1):
            if not self.is_ready(self.chosen):
                ready = (port for port in list(self.ports) if self.is_ready(port))
                self.chosen = next(ready, self.chosen)

    def _accept(self) -> None:
        assert self._listener is not None
        while not self._stopped.is_set():
            try:
                inside, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._forward, args=(inside,), daemon=True)
            thread.start()

    def _forward(self, inside: socket.socket) -> None:
        chosen = self.chosen
        self.connections[chosen] += 1
        with (
            inside,
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", chosen), 2) as outside,
            selectors.DefaultSelector() as selector,
        ):
            outside.settimeout(None)
            selector.register(inside, selectors.EVENT_READ, outside)
            selector.register(outside, selectors.EVENT_READ, inside)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not data:
                        return
                    key.data.sendall(data)
