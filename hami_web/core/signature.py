"""Signatures of reservations: what no one but the scheduler could have put on a Pod.

HMAC-SHA256 over Pod UID, node and the logical records, in an annotation of its own. The runtime
identity is left out, so that the agent's enrichment keeps a signature valid; so are unknown keys,
which HAMi's agent drops. Several keys are accepted and one signs, so that keys can be changed
while Pods live: add the new key last, move it first everywhere, remove the old one when no Pod
carries it any more.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hami_web.core import wire
from hami_web.core.annotations import POD_MIG_SIGNATURE
from hami_web.core.errors import CoreError, InvalidField
from hami_web.core.reservation import Reservation

logger = logging.getLogger(__name__)

VERSION: Final = "v1"
SECRET_MIN: Final = 32
"""Bytes; a shorter secret than the digest weakens it."""
KEYS_MAX: Final = 16
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)
_ALLOWED_LINE: Final = "<id> <base64 of at least 32 bytes>, with an id of letters, digits, - and _"


class InvalidSignature(CoreError):
    """A reservation is not what the scheduler signed; nothing may be created for it."""

    code = "mig.signature.invalid"


class InvalidSigningKey(InvalidField):
    """A key file cannot be used. The error never shows a secret."""

    code = "mig.signature.key_invalid"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A secret of the cluster and the public name that signatures carry."""

    key_id: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The accepted keys, at least one; the first signs."""

    keys: tuple[SigningKey, ...]

    def sign(self, pod_uid: str, node: str, reservations: Iterable[Reservation]) -> str:
        """``v1.<key id>.<hex of the HMAC>`` for the annotation."""
        key = self.keys[0]
        digest = _digest(key, canonical(pod_uid, node, reservations))
        return f"{VERSION}.{key.key_id}.{digest}"

    def verify(
        self, signature: str | None, pod_uid: str, node: str, reservations: Iterable[Reservation]
    ) -> str:
        """Return the id of the key that signed this; raise :class:`InvalidSignature` if none did.

        ``signature`` is the annotation's value, None where the Pod has none.
        """
        if not signature:
            raise InvalidSignature(f"{POD_MIG_SIGNATURE}: missing; the reservation is not signed")
        version, _, rest = signature.partition(".")
        key_id, _, digest = rest.partition(".")
        if version != VERSION:
            raise InvalidSignature(
                f"{POD_MIG_SIGNATURE}: version {version[:20]!r} is not allowed; allowed: {VERSION}"
            )
        key = next((key for key in self.keys if key.key_id == key_id), None)
        if key is None:
            known = ", ".join(key.key_id for key in self.keys)
            raise InvalidSignature(
                f"{POD_MIG_SIGNATURE}: key {key_id[:63]!r} is not known; known: {known}"
            )
        expected = _digest(key, canonical(pod_uid, node, reservations))
        if not hmac.compare_digest(expected.encode(), digest.encode(errors="surrogatepass")):
            raise InvalidSignature(
                f"{POD_MIG_SIGNATURE}: does not match Pod UID {pod_uid}, node {node} and the "
                "reserved placements"
            )
        return key.key_id


def canonical(pod_uid: str, node: str, reservations: Iterable[Reservation]) -> bytes:
    """The signed bytes: one JSON array, records in order of container and device."""
    records = [
        [r.container_index, r.device_index, r.gpu_uuid, r.profile, r.placement.start,
         r.placement.size]
        for r in reservations
    ]  # fmt: skip
    return wire.encode([POD_MIG_SIGNATURE, VERSION, pod_uid, node, sorted(records)]).encode(
        errors="surrogatepass"
    )


def parse_key_ring(text: str, where: str) -> KeyRing:
    """Read a key file: one key a line, ``<id> <base64 secret>``; ``#`` begins a comment.

    The first key signs. Raises :class:`InvalidSigningKey` naming the line.
    """
    keys: list[SigningKey] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        key = _parse_key(words, f"{where}, line {number}")
        if any(other.key_id == key.key_id for other in keys):
            raise InvalidSigningKey(f"{where}, line {number}", key.key_id, "each key id once")
        keys.append(key)
    if not 1 <= len(keys) <= KEYS_MAX:
        raise InvalidSigningKey(where, f"{len(keys)} keys", f"1…{KEYS_MAX} lines, {_ALLOWED_LINE}")
    return KeyRing(tuple(keys))


class KeyFile:
    """A key file that is read again when it changes; safe for threads.

    The first reading raises; afterwards a file that cannot be used is logged, and the keys read
    last stay in force.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp = self._look()
        self._ring = self._read()

    def ring(self) -> KeyRing:
        """The keys as the file has them now."""
        with self._lock:
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._ring = self._read()
                    logger.info("%s: signing with key %s", self._path, self._ring.keys[0].key_id)
                except InvalidSigningKey as error:
                    logger.error("the signing keys read before stay in force: %s", error)  # noqa: TRY400  # no secret in a trace
            return self._ring

    def _look(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0, 0)
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def _read(self) -> KeyRing:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "no UTF-8 text"
            raise InvalidSigningKey(str(self._path), why, "a readable key file") from None
        return parse_key_ring(text, str(self._path))


def _parse_key(words: list[str], where: str) -> SigningKey:
    if len(words) != 2 or not _KEY_ID.fullmatch(words[0]):
        raise InvalidSigningKey(where, f"{len(words)} words", _ALLOWED_LINE)
    try:
        secret = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSigningKey(where, "no base64", _ALLOWED_LINE) from None
    if len(secret) < SECRET_MIN:
        raise InvalidSigningKey(where, f"{len(secret)} bytes", _ALLOWED_LINE)
    return SigningKey(words[0], secret)


def _digest(key: SigningKey, message: bytes) -> str:
    return hmac.digest(key.secret, message, "sha256").hex()
