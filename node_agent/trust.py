"""Whether a reservation is the scheduler's: signatures, where the cluster has keys."""

from __future__ import annotations

import logging
from pathlib import Path

from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidField
from hami_web.core.faults import Fault, line
from hami_web.core.reservation import decode_allocations
from hami_web.core.signature import InvalidSignature, InvalidSigningKey, KeyFile
from hami_web.core.trouble import Trouble
from node_agent.errors import ReservationMismatch, ReservationUntrusted
from node_agent.pods import ObservedPod

logger = logging.getLogger(__name__)


class Trust:
    """Verifies reservations with the keys of a file; without a file every one is accepted.

    ``accept_unsigned`` lets reservations without a signature pass, for HAMi's own scheduler, which
    signs nothing. A signature that is there must always be right.
    """

    def __init__(self, key_file: Path | None, *, accept_unsigned: bool) -> None:
        self._path = key_file
        self._accept_unsigned = accept_unsigned
        self._keys: KeyFile | None = None
        self._trouble = Trouble(logger, "%s; Allocate is refused until they can be read")

    @property
    def is_strict(self) -> bool:
        """True where only signed reservations are accepted."""
        return self._path is not None and not self._accept_unsigned

    def problem(self) -> str:
        """Why no signature can be verified, as a line, or an empty text; keys once read stay."""
        if self._path is None or self._keys is not None:
            return ""
        try:
            self._keys = KeyFile(self._path)
        except InvalidSigningKey as error:
            problem = line(Fault.SIGNING_KEYS, f"HAMI_SIGNING_KEYS: {error}")
            self._trouble.tell(problem)
            return problem
        self._trouble.over()
        return ""

    def check(self, pod: ObservedPod) -> None:
        """Raise :class:`ReservationUntrusted` for a reservation that the scheduler did not sign."""
        if self._path is None:
            return
        signature = pod.annotations.get(keys.POD_MIG_SIGNATURE)
        if signature is None and self._accept_unsigned:
            return
        try:
            if self._keys is None:
                self._keys = KeyFile(self._path)
            reservations = decode_allocations(pod.annotations.get(keys.POD_MIG_ALLOCATIONS, ""))
            self._keys.ring().verify(signature, pod.uid, pod.node, reservations)
        except InvalidSignature as error:
            raise ReservationUntrusted(f"Pod {pod.key}: {error}") from error
        except InvalidSigningKey as error:
            raise ReservationUntrusted(f"no reservation can be verified: {error}") from error
        except InvalidField as error:
            raise ReservationMismatch(f"Pod {pod.key}: {error}") from error
