"""Decisions over HTTP: the shipped server against a bare WSGI callable around the same core."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.filter.timing import percentile
from tests.benchmarks.fleet import filter_body, node_names
from tests.benchmarks.report import Report

THREADS = "128"
SHIPPED = [sys.executable, "manage.py", "extender", "--threads", THREADS, "--listen"]
ROOT = Path(__file__).parents[3]
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: here}}}}]
clusters: [{{name: here, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: here, user: {{token: none}}}}]
"""


@dataclass(slots=True)
class Client:
    """One kept-alive connection, as kube-scheduler has; a request is one write."""

    port: int
    _socket: socket.socket | None = None

    def filter(self, body: bytes) -> tuple[int, bytes]:
        """Status and body of one call."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), 10)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = (
            "POST /filter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        return self._answer(self._socket)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _answer(self, stream: socket.socket) -> tuple[int, bytes]:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more(stream)
        head, _, body = received.partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        lengths = [int(line.split(":")[1]) for line in lines if line.startswith("content-length")]
        if lengths:
            while len(body) < lengths[0]:
                body += self._more(stream)
        else:  # chunked, closed by an empty chunk
            while not body.endswith(b"0\r\n\r\n"):
                body += self._more(stream)
        return int(lines[0].split()[1]), body

    @staticmethod
    def _more(stream: socket.socket) -> bytes:
        part = stream.recv(65536)
        if not part:
            raise ConnectionError("the server closed the connection")
        return part


def over_http(report: Report, large: Path, beside: Path, *, quick: bool) -> None:
    """The goals over HTTP, and of a restart."""
    repeats = 300 if quick else 3000
    with lists(large) as api:
        with server(report, SHIPPED, api) as port:
            shipped = calls(port, node_names(5_000), repeats)
            report.at_most("server-resident-mib", largest_resident_mib(port), 300)
            report.table(f"shipped server: {shown(shipped)}")
        bare_command = [sys.executable, "-m", "tests.benchmarks.filter.raw"]
        with server(report, bare_command, api, after=[THREADS]) as port:
            bare = calls(port, node_names(5_000), repeats)
            report.table(f"bare WSGI callable: {shown(bare)}")
    median = percentile(shipped, 0.5)
    report.at_least("http-decisions-per-second", len(shipped) / sum(shipped), 810)
    report.at_most("http-median-over-bare-wsgi", median / percentile(bare, 0.5), 1.8)
    report.at_most("http-p99-over-median", percentile(shipped, 0.99) / median, 5)
    report.at_most("http-median-ms", median * 1e3, 20)
    with lists(beside) as api:
        began = time.monotonic()
        with server(report, SHIPPED, api, names=2_000):
            report.at_most("first-answer-after-restart-s", time.monotonic() - began, 3)


def calls(port: int, names: Sequence[str], repeats: int) -> list[float]:
    """Seconds of each call for a new Pod with all names, one after the other."""
    client = Client(port)
    samples = []
    for number in range(repeats + 20):
        body = filter_body(f"http-{number}", names)
        began = time.perf_counter()
        status, answer = client.filter(body)
        samples.append(time.perf_counter() - began)
        if status != 200 or b'"Error":""' not in answer or b"gpu-node" not in answer:
            raise RuntimeError(f"{status}: {answer[:300]!r}")
    client.close()
    return samples[20:]


@contextmanager
def lists(folder: Path) -> Iterator[int]:
    """The API server with a fleet; gives its port."""
    command = [sys.executable, "-m", "tests.benchmarks.filter.lists", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def server(
    report: Report, command: Sequence[str], api: int, *, after: Sequence[str] = (), names: int = 10
) -> Iterator[int]:
    """A started server that has answered once; gives its port."""
    port = free_port()
    folder = tempfile.TemporaryDirectory()
    config = Path(folder.name) / "kubeconfig"
    config.write_text(KUBECONFIG.format(port=api))
    environment = {
        **os.environ,
        "HAMI_KUBECONFIG": str(config),
        "HAMI_LEADER_ELECTION": "false",
        "DJANGO_SETTINGS_MODULE": "hami_web.settings",
    }
    report.progress(f"starting {' '.join(command[1:3])}")
    process = subprocess.Popen([*command, f"127.0.0.1:{port}", *after], cwd=ROOT, env=environment)
    try:
        wait_for_answer(port, names)
        yield port
    finally:
        process.terminate()
        process.wait(20)
        folder.cleanup()


def largest_resident_mib(port: int) -> float:
    """Resident memory of the process that answers on a port, found by its command line."""
    sizes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f":{port}".encode() in (folder / "cmdline").read_bytes():
                lines = (folder / "status").read_text().splitlines()
                sizes += [int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
        except OSError:  # the process has ended
            continue
    return max(sizes) / 1024


def wait_for_answer(port: int, names: int, seconds: float = 60) -> None:
    """Ask until the server decides."""
    body = filter_body("first", node_names(names))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        client = Client(port)
        try:
            if client.filter(body)[0] == 200:
                return
        except OSError:
            pass
        finally:
            client.close()
        time.sleep(0.02)
    raise TimeoutError(f"no answer on port {port} within {seconds:g} s")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def shown(samples: Sequence[float]) -> str:
    """Median and 99th percentile in milliseconds."""
    median, high = percentile(samples, 0.5) * 1e3, percentile(samples, 0.99) * 1e3
    return f"{len(samples)} calls, median {median:.3f} ms, p99 {high:.3f} ms"
