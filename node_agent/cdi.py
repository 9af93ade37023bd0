"""CDI files: one for each instance, written whole, removed once the instance is seen gone.

The version that a file declares is the lowest that covers its fields, since runtimes refuse one
that they do not know (CNCF Container Device Interface, SPEC.md, table of versions).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from hami_web.core import wire
from hami_web.core.errors import InvalidField
from node_agent.devicenodes import DeviceNode
from node_agent.errors import DeliveryFailure
from node_agent.journal import write_durably

logger = logging.getLogger(__name__)

KIND: Final = "hami.io/mig"
_PREFIX: Final = "hami.io-mig_"
_SUFFIX: Final = ".json"
_LOWEST: Final = (0, 3, 0)
_SINCE: Final[Mapping[tuple[str, str], tuple[int, int, int]]] = {
    ("mounts", "type"): (0, 4, 0),
    ("deviceNodes", "hostPath"): (0, 5, 0),
    ("", "intelRdt"): (0, 7, 0),
    ("", "additionalGids"): (0, 7, 0),
    ("", "netDevices"): (1, 1, 0),
}
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.:-]")

Edits = Mapping[str, object]


class CdiFiles:
    """The agent's own files in a folder that it shares with other vendors.

    ``base`` is a CDI file of the driver's libraries; its container edits are repeated in each.
    """

    def __init__(self, folder: Path, base: Path | None) -> None:
        self._folder = folder
        self._base = base

    def write(self, mig_uuid: str, nodes: Sequence[DeviceNode]) -> str:
        """Make an instance known to container runtimes; returns its CDI name.

        Raises :class:`DeliveryFailure` when the file cannot be written or the base not be used.
        """
        edits, declared = self._base_edits()
        document: dict[str, object] = {
            "cdiVersion": ".".join(map(str, max(lowest_version(edits), declared))),
            "kind": KIND,
            "devices": [
                {
                    "name": device_name(mig_uuid),
                    "containerEdits": {
                        "deviceNodes": [
                            {
                                "path": node.path,
                                "type": "c",
                                "major": node.major,
                                "minor": node.minor,
                                "permissions": "rw",
                            }
                            for node in nodes
                        ]
                    },
                }
            ],
        }
        if edits:
            document["containerEdits"] = edits
        text = json.dumps(document, indent=1)
        path = self._path(mig_uuid)
        try:
            if not (path.exists() and path.read_text(encoding="utf-8") == text):
                self._folder.mkdir(parents=True, exist_ok=True)
                write_durably(path, text)
        except OSError as error:
            raise DeliveryFailure(f"the CDI file {path} cannot be written: {error}") from error
        return f"{KIND}={device_name(mig_uuid)}"

    def remove(self, mig_uuid: str) -> None:
        """Forget an instance that is gone; an absent file is no error."""
        path = self._path(mig_uuid)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DeliveryFailure(f"the CDI file {path} cannot be removed: {error}") from error

    def own(self) -> tuple[Path, ...]:
        """Our files as they are now, drafts of interrupted writes among them."""
        return tuple(sorted(self._folder.glob(f"{_PREFIX}*")))

    def prune(self, found: Iterable[Path], existing: Collection[str]) -> None:
        """Remove those of the files found before whose MIG UUID is not among the existing ones."""
        kept = {self._path(mig_uuid) for mig_uuid in existing}
        for path in found:
            if path not in kept:
                logger.info("removing %s, whose instance does not exist", path)
                path.unlink(missing_ok=True)

    def _path(self, mig_uuid: str) -> Path:
        return self._folder / f"{_PREFIX}{device_name(mig_uuid)}{_SUFFIX}"

    def _base_edits(self) -> tuple[Edits, tuple[int, ...]]:
        """Container edits of the base, and the version it must declare for unknown fields."""
        if self._base is None:
            return {}, _LOWEST
        try:
            document = wire.as_object(
                yaml.safe_load(self._base.read_text(encoding="utf-8")), "base"
            )
            edits = wire.as_object(document.get("containerEdits") or {}, "base.containerEdits")
            declared = _version(wire.as_text(document.get("cdiVersion"), "base.cdiVersion"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError, InvalidField, ValueError) as error:
            raise DeliveryFailure(f"the CDI file {self._base} cannot be used: {error}") from error
        return edits, (_LOWEST if _all_known(edits) else declared)


def device_name(mig_uuid: str) -> str:
    """The instance's name in CDI; an old-style MIG UUID holds a character that names may not."""
    return _NOT_IN_NAMES.sub("_", mig_uuid)


def lowest_version(edits: Edits) -> tuple[int, ...]:
    """The lowest CDI version that covers the fields of these container edits."""
    return max((_SINCE.get(field, _LOWEST) for field in _fields(edits)), default=_LOWEST)


_OLDEST_FIELDS: Final = frozenset(
    [("", name) for name in ("env", "deviceNodes", "mounts", "hooks")]
    + [
        ("deviceNodes", name)
        for name in ("path", "type", "major", "minor", "fileMode", "permissions", "uid", "gid")
    ]
    + [("mounts", name) for name in ("hostPath", "containerPath", "options")]
    + [("hooks", name) for name in ("hookName", "path", "args", "env", "timeout")]
)


def _all_known(edits: Edits) -> bool:
    return all(field in _OLDEST_FIELDS or field in _SINCE for field in _fields(edits))


def _fields(edits: Edits) -> Iterable[tuple[str, str]]:
    for name, value in edits.items():
        yield "", name
        for item in value if isinstance(value, list) else ():
            if isinstance(item, dict):
                yield from ((name, str(key)) for key in item)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
