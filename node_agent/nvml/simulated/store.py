"""The node's state in one file, shared by processes: locked for changes, cached for reads.

``node.json`` is written whole and renamed. ``node.lock`` is locked for a change and holds the
generation of the newest state, so a reader learns with one small read whether its copy is current.
The number is written before the rename: a writer that dies between the two leaves a number ahead of
the file, which makes readers read the file again, never trust an old copy.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from node_agent.nvml.simulated.capabilities import write_capability_files
from node_agent.nvml.simulated.state import Node, SimulatorError, decode_node, encode_node

_NUMBER_WIDTH = 20


class StateStore:
    """Reads and changes of one node's state. Safe for threads, processes and after a fork."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = directory / "node.json"
        self._lock_file = directory / "node.lock"
        self._lock = threading.RLock()
        self._descriptor = -1
        self._pid = -1
        self._cached: Node | None = None

    def exists(self) -> bool:
        return self._file.exists()

    def read(self) -> Node:
        """The newest state, shared with other readers: do not change it.

        Raise :class:`SimulatorError` when there is none or it is damaged.
        """
        generation = os.pread(self._open(), _NUMBER_WIDTH, 0)
        cached = self._cached
        if cached is None or generation != _number(cached.generation):
            cached = self._cached = self._load()
        return cached

    @contextmanager
    def change(self) -> Iterator[Node]:
        """A private copy of the newest state, stored when the block ends without an error."""
        descriptor = self._open()
        with self._lock:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                node = self._load()
                yield node
                self._store(node, descriptor)
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def create(self, node: Node) -> None:
        """Store the first state, or replace all that was there."""
        self.directory.mkdir(parents=True, exist_ok=True)
        descriptor = self._open(create=True)
        with self._lock:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                known = os.pread(descriptor, _NUMBER_WIDTH, 0)
                node.generation = int(known or b"0")
                self._store(node, descriptor)
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._descriptor >= 0 and self._pid == os.getpid():
            os.close(self._descriptor)
        self._descriptor = -1
        self._cached = None

    def _open(self, *, create: bool = False) -> int:
        """The lock file of this process: a forked child needs a lock of its own."""
        if self._pid != os.getpid():
            self._lock = threading.RLock()
            self._descriptor = -1
            self._pid = os.getpid()
        if self._descriptor < 0:
            with self._lock:
                if self._descriptor < 0:
                    self._descriptor = self._open_file(create=create)
        return self._descriptor

    def _open_file(self, *, create: bool) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return os.open(self._lock_file, flags, 0o666)
        except FileNotFoundError:
            raise SimulatorError(f"state directory: {self.directory} holds no node") from None

    def _load(self) -> Node:
        try:
            return decode_node(self._file.read_bytes())
        except FileNotFoundError:
            raise SimulatorError(f"state directory: {self.directory} holds no node") from None

    def _store(self, node: Node, descriptor: int) -> None:
        node.generation += 1
        draft = self._file.with_suffix(".draft")
        draft.write_bytes(encode_node(node))
        os.pwrite(descriptor, _number(node.generation), 0)
        draft.replace(self._file)
        write_capability_files(self.directory / "root", node)


def _number(generation: int) -> bytes:
    return b"%0*d" % (_NUMBER_WIDTH, generation)
