"""The certificate that the extender is served with: read again when its files change.

Who renews it replaces two files, and a reader may see the new one of them only: the pair that was
read last and belonged together stays in use until both are good again.
"""

from __future__ import annotations

import functools
import logging
import ssl
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from hami_web.core.faults import Fault, line

logger = logging.getLogger(__name__)

_Look = tuple[tuple[int, int], ...]


class UnusablePair(Exception):
    """Certificate and key cannot be served; the text names the files and what is wrong."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its key as a server needs them, and until when it is believed."""

    context: ssl.SSLContext
    begins: datetime
    ends: datetime


def load_pair(certificate: Path, key: Path) -> Pair:
    """Read both. Raises :class:`UnusablePair`; never for one that is only too old."""
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key, password=_no_password)
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise UnusablePair(f"{certificate}, {key}: {_reason(certificate, key, error)}") from error
    return Pair(context, found.not_valid_before_utc, found.not_valid_after_utc)


class ServingCertificate:
    """The newest good pair of two files; ``problem`` says what is wrong with it or with them."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises :class:`UnusablePair`: without a first good pair there is nothing to serve."""
        self._certificate = certificate
        self._key = key
        self._lock = threading.Lock()
        self._looked = self._look()
        self._pair = load_pair(certificate, key)
        self._told = ""

    def context(self) -> ssl.SSLContext:
        """For the next connection; two calls of ``stat`` unless a file changed."""
        return self._newest().context

    def problem(self) -> str:
        """Why clients cannot trust what is served, as a line, or an empty text."""
        pair, now = self._newest(), datetime.now(UTC)
        text = ""
        if now >= pair.ends:
            text = f"{self._certificate}: it ended at {pair.ends:%F %T} UTC"
        elif now < pair.begins:
            text = f"{self._certificate}: it begins at {pair.begins:%F %T} UTC, is the clock right?"
        problem = line(Fault.CERTIFICATE, text) if text else ""
        if problem != self._told:
            self._told = problem
            if problem:
                logger.error("%s", problem)
        return problem

    def _newest(self) -> Pair:
        with self._lock:
            looked = self._look()
            if looked != self._looked:
                self._looked = looked
                self._read()
            return self._pair

    def _read(self) -> None:
        try:
            self._pair = load_pair(self._certificate, self._key)
        except UnusablePair as error:
            logger.error(  # noqa: TRY400  # one line for people
                "%s; the pair read before stays in use", line(Fault.CERTIFICATE, error)
            )
            return
        logger.info("%s: the certificate was read anew", self._certificate)

    def _look(self) -> _Look:
        return (_state(self._certificate), _state(self._key))


@functools.cache
def serving(certificate: Path, key: Path) -> ServingCertificate:
    """The one of this process: its server and its probes speak of the same pair."""
    return ServingCertificate(certificate, key)


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)


def _no_password() -> bytes:
    """Nobody can be asked; a key that needs one cannot be read."""
    return b""


def _reason(certificate: Path, key: Path, error: Exception) -> str:
    for path in (certificate, key):
        try:
            path.read_bytes()
        except OSError as unreadable:
            return f"{path.name}: {unreadable.strerror}"
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return "the key is not the certificate's"
    return f"no certificate and key in PEM ({error})"
