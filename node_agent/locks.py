"""Mutation locks: one for each GPU and one for the agent, held against threads and processes."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from node_agent.errors import GpuLocked

_RETRY_SECONDS: Final = 0.02


class Deadline:
    """A moment on the monotonic clock by which work must end."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._at - time.monotonic())

    @property
    def expired(self) -> bool:
        return self.remaining <= 0.0


class GpuLocks:
    """Locks by GPU UUID. A thread lock alone would not hold a second process off."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mutex = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def hold(self, gpu_uuid: str, deadline: Deadline) -> Iterator[None]:
        """Hold one GPU's lock. Raises :class:`GpuLocked` when it cannot be had in time."""
        with self._mutex:
            lock = self._locks.setdefault(gpu_uuid, threading.Lock())
        if not lock.acquire(timeout=deadline.remaining):
            raise GpuLocked(f"GPU {gpu_uuid} is being changed by another call; try again")
        try:
            with _file_lock(self._folder / f"{gpu_uuid}.lock", deadline):
                yield
        finally:
            lock.release()


@contextmanager
def _file_lock(path: Path, deadline: Deadline) -> Iterator[None]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise GpuLocked(f"the lock file {path} cannot be used: {error}") from error
    try:
        while not try_lock(descriptor):
            if deadline.expired:
                raise GpuLocked(f"{path.stem} is being changed by another process ({path})")
            time.sleep(_RETRY_SECONDS)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Take an exclusive lock on an open file without waiting; closing the file ends it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
