"""A reverse proxy as deployments have one: TLS ends here, and a path of its host is ours."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HEAD_END: Final = b"\r\n\r\n"
TOLD: Final = (b"X-Forwarded-Proto: https", b"Connection: close")


def certificate(folder: Path) -> Path:
    """A file with key and certificate for localhost."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "localhost.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file


class ReverseProxy(socketserver.ThreadingTCPServer):
    """Passes what is below ``base`` to a port; all else of the host belongs to someone else.

    All that comes is from one ``client``, by the last part of its address.
    """

    def __init__(
        self, target: int, base: str, file: Path, *, takes_base_away: bool, client: int = 7
    ) -> None:
        self.target, self.base, self.takes_base_away = target, base, takes_base_away
        self.told = (*TOLD, b"X-Forwarded-For: 192.0.2.%d" % client)
        self.strays: list[str] = []
        self.open: set[socket.socket] = set()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(file)
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = int(self.server_address[1])
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.shutdown()
        self._thread.join()
        for each in tuple(self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.server_close()  # waits for the threads of connections

    def forwarded(self, request: bytes) -> bytes | None:
        """The head of a request as it is passed on; None for what is not below the base."""
        first, *headers = request.removesuffix(HEAD_END).split(b"\r\n")
        method, address, version = first.decode().split(" ")
        if not f"{address.partition('?')[0]}/".startswith(f"{self.base}/"):
            self.strays.append(address)
            return None
        if self.takes_base_away:
            address = f"/{address.removeprefix(self.base).lstrip('/')}"
        kept = [line for line in headers if not line.lower().startswith(b"connection:")]
        line = f"{method} {address} {version}".encode()
        return b"\r\n".join([line, *kept, *self.told]) + HEAD_END


class _Connection(socketserver.BaseRequestHandler):
    server: ReverseProxy

    def handle(self) -> None:
        """One request and its answer, however long that lasts."""
        plain: socket.socket = self.request
        # Browsers leave as they like, also in the middle of a greeting.
        with contextlib.suppress(OSError), self._kept(plain):
            plain.settimeout(60)
            with self.server.tls.wrap_socket(plain, server_side=True) as browser:
                self._answer(browser)

    def _answer(self, browser: socket.socket) -> None:
        request = b""
        while HEAD_END not in request:
            if not (data := browser.recv(65536)):
                return
            request += data
        head, _, rest = request.partition(HEAD_END)
        passed = self.server.forwarded(head + HEAD_END)
        if passed is None:
            browser.sendall(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
            return
        length = int(dict(_headers(head)).get(b"content-length", b"0"))
        while len(rest) < length:
            rest += browser.recv(65536)
        with socket.create_connection(("127.0.0.1", self.server.target)) as web, self._kept(web):
            web.sendall(passed + rest)
            while data := web.recv(65536):
                browser.sendall(data)

    @contextlib.contextmanager
    def _kept(self, each: socket.socket) -> Iterator[None]:
        self.server.open.add(each)
        try:
            yield
        finally:
            self.server.open.discard(each)


def _headers(head: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        yield name.strip().lower(), value.strip()
