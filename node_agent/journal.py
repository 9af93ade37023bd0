"""The agent's journal: intent before a GPU instance is made, result after.

It helps to decide and is no truth: NVML and the Pod annotations are. One small file, written whole,
synced and renamed, so that a kill at any moment leaves the old or the new text.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hami_web.core import wire
from hami_web.core.errors import InvalidField
from hami_web.core.placement import Placement
from hami_web.core.reservation import RuntimeIdentity
from node_agent.errors import JournalFailure
from node_agent.ownership import InstanceRecord, InstanceSpec, Owner, RecordState

logger = logging.getLogger(__name__)

_VERSION: Final = 1
_FILE: Final = "instances.json"


@dataclass(frozen=True, slots=True)
class DriverLoad:
    """Which life of the hardware state this is; instances do not outlive either part of it."""

    boot_id: str
    driver: str


class Journal:
    """Records by owner, in memory and on disk. Thread-safe; one process owns the folder."""

    def __init__(self, folder: Path, load: DriverLoad) -> None:
        """Read the journal. ``doubt`` says why an unreadable one was kept aside."""
        self._path = folder / _FILE
        self._load = load
        self._mutex = threading.Lock()
        self._records: dict[Owner, InstanceRecord] = {}
        self._earlier: dict[Owner, InstanceRecord] = {}
        self.doubt = ""
        folder.mkdir(parents=True, exist_ok=True)
        self._read()

    def records(self) -> tuple[InstanceRecord, ...]:
        """All records, ordered by owner."""
        with self._mutex:
            return tuple(self._records[owner] for owner in sorted(self._records))

    def get(self, owner: Owner) -> InstanceRecord | None:
        with self._mutex:
            return self._records.get(owner)

    def put(self, record: InstanceRecord) -> None:
        """Store a record durably. Raises :class:`JournalFailure`; then nothing has changed."""
        with self._mutex:
            self._store(self._records | {record.owner: record})

    def remove(self, owner: Owner) -> None:
        """Forget a record durably; unknown owners are no error."""
        with self._mutex:
            if owner in self._records:
                self._store({o: r for o, r in self._records.items() if o != owner})

    def earlier(self) -> Mapping[Owner, InstanceRecord]:
        """Realized records from before the last reboot or driver load: what existed once."""
        with self._mutex:
            return dict(self._earlier)

    def forget_earlier(self) -> None:
        """Whatever could be made of the earlier records was made."""
        with self._mutex:
            if self._earlier:
                self._earlier = {}
                self._store(self._records)

    def _store(self, records: Mapping[Owner, InstanceRecord]) -> None:
        document = {
            "version": _VERSION,
            "bootId": self._load.boot_id,
            "driverLoad": self._load.driver,
            "records": [_encode(records[owner]) for owner in sorted(records)],
            "earlier": [_encode(self._earlier[owner]) for owner in sorted(self._earlier)],
        }
        try:
            write_durably(self._path, json.dumps(document, separators=(",", ":")))
        except OSError as error:
            raise JournalFailure(f"cannot write the journal {self._path}: {error}") from error
        self._records = dict(records)

    def _read(self) -> None:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            self._keep_aside(str(error))
            return
        try:
            document = wire.as_object(json.loads(text), "journal")
            wire.as_integer(document.get("version"), "journal.version", least=1, most=_VERSION)
            records = _decode_all(document, "records")
            earlier = _decode_all(document, "earlier")
        except (ValueError, RecursionError, InvalidField) as error:
            self._keep_aside(str(error))
            return
        load = DriverLoad(str(document.get("bootId")), str(document.get("driverLoad")))
        if load == self._load:
            self._records, self._earlier = records, earlier
            return
        logger.warning(
            "%d records are from before a reboot or driver reload and prove nothing now",
            len(records),
        )
        self._earlier = earlier | {
            owner: record
            for owner, record in records.items()
            if record.state is RecordState.REALIZED
        }

    def _keep_aside(self, reason: str) -> None:
        aside = self._path.with_name(f"{_FILE}.malformed-{os.getpid()}-{self._path.stat().st_ino}")
        self._path.rename(aside)
        self.doubt = f"journal {self._path} is unreadable ({reason}); kept aside as {aside.name}"
        logger.error("%s", self.doubt)


def write_durably(path: Path, text: str) -> None:
    """Replace a file so that a crash at any moment leaves its old or its new text."""
    draft = path.with_name(path.name + ".new")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _decode_all(document: Mapping[str, object], key: str) -> dict[Owner, InstanceRecord]:
    where = f"journal.{key}"
    present = document.get(key, [] if key == "earlier" else None)
    items = enumerate(wire.as_array(present, where))
    records = (_decode(wire.as_object(item, f"{where}[{number}]")) for number, item in items)
    return {record.owner: record for record in records}


def _encode(record: InstanceRecord) -> dict[str, object]:
    identity = record.identity
    return {
        "podUID": record.owner.pod_uid,
        "containerIndex": record.owner.container_index,
        "deviceIndex": record.owner.device_index,
        "namespace": record.namespace,
        "pod": record.pod_name,
        "gpuUUID": record.spec.gpu_uuid,
        "profile": record.spec.profile,
        "profileID": record.profile_id,
        "start": record.spec.placement.start,
        "size": record.spec.placement.size,
        "state": record.state.value,
        "migUUID": identity and identity.mig_uuid,
        "gpuInstanceID": identity and identity.gpu_instance_id,
        "computeInstanceID": identity and identity.compute_instance_id,
        "deviceIDs": list(record.device_ids),
        "since": record.since,
        "reason": record.reason,
    }


def _decode(entry: Mapping[str, object]) -> InstanceRecord:
    def text(key: str) -> str:
        return wire.as_text(entry.get(key), f"journal {key}")

    def number(key: str, least: int = 0) -> int:
        return wire.as_integer(entry.get(key), f"journal {key}", least=least)

    identity = None
    if entry.get("migUUID") is not None:
        identity = RuntimeIdentity(
            text("migUUID"), number("gpuInstanceID"), number("computeInstanceID")
        )
    since = entry.get("since")
    reason = entry.get("reason", "")
    return InstanceRecord(
        owner=Owner(text("podUID"), number("containerIndex"), number("deviceIndex")),
        namespace=text("namespace"),
        pod_name=text("pod"),
        spec=InstanceSpec(
            text("gpuUUID"), text("profile"), Placement(number("start"), number("size", least=1))
        ),
        profile_id=number("profileID"),
        state=RecordState(text("state")),
        identity=identity,
        device_ids=tuple(
            wire.as_text(item, "journal deviceIDs")
            for item in wire.as_array(entry.get("deviceIDs"), "journal deviceIDs")
        ),
        since=float(since) if isinstance(since, int | float) else 0.0,
        reason=reason if isinstance(reason, str) else "",
    )
