"""From whole-GPU geometries to an allowlist: HAMi up to v2.9, and NVIDIA's mig-parted.

A geometry says which instances a whole GPU is cut into at once. An allowlist only says which
profiles are permitted, so the union of all geometries of a model is what loses nothing. Shapes:
``nvidia.knownMigGeometries`` with ``allowedGeometries`` as lists of instances, or as groups with
``geometries`` (later versions, also with ``core``); mig-parted's ``mig-configs``, with and without
``device-filter``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hami_web.core.allowlist import PRESENT_LABELS, AllowlistEntry, reported_names
from hami_web.core.errors import InvalidPolicy
from hami_web.core.known_profiles import KNOWN_PROFILES, PCI_MODELS

LEGACY_KEY: Final = "knownMigGeometries"
_PARTED: Final = "mig-configs"
_NAME: Final = re.compile(r"(\d+)g\.(\d+)gb((?:[+-][a-z0-9.+-]+)?)")
_COUNT_MOST: Final = 64


class NoteCode(StrEnum):
    """Why the result is as it is."""

    FROM_GEOMETRY = "FromGeometry"
    FROM_ALLOWLIST = "FromAllowlist"
    RENAMED = "Renamed"
    NOT_NAMED_BY_NVML = "NotNamedByNvml"
    MODEL_NOT_KNOWN = "ModelNotKnown"
    MEMORY_CONTRADICTS = "MemoryContradicts"
    COUNT_IMPOSSIBLE = "CountImpossible"
    ANY_MODEL = "AnyModel"
    FILTER_NOT_KNOWN = "FilterNotKnown"
    WITHOUT_MIG = "WithoutMig"


@dataclass(frozen=True, slots=True)
class Note:
    """One choice; ``where`` is the field that led to it, ``detail`` plain facts."""

    code: NoteCode
    where: str
    model: str
    profile: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The union for each model, and a note for every choice."""

    entries: tuple[AllowlistEntry, ...]
    notes: tuple[Note, ...]


def holds_geometries(document: object) -> bool:
    """Whether a device configuration is of the old kind, wholly or in part."""
    section = document.get("nvidia", document) if isinstance(document, dict) else None
    return isinstance(section, dict) and (LEGACY_KEY in section or _PARTED in section)


def convert(document: object) -> Conversion:
    """Convert a configuration as read from YAML. Raises :class:`InvalidPolicy` naming the field."""
    _check_finite(document, "")
    if not isinstance(document, dict):
        raise InvalidPolicy(
            "configuration", document, f"a mapping with {LEGACY_KEY} or mig-configs"
        )
    union = _Union()
    if _PARTED in document:
        _read_parted(document[_PARTED], union)
        return union.conversion()
    where = "nvidia." if "nvidia" in document else ""
    section = document.get("nvidia", document)
    if not isinstance(section, dict) or LEGACY_KEY not in section:
        raise InvalidPolicy(
            where.rstrip(".") or "configuration", section, f"a mapping with {LEGACY_KEY}"
        )
    _read_legacy(section[LEGACY_KEY], f"{where}{LEGACY_KEY}", union)
    if "migProfileAllowlist" in section:
        _read_allowlist(section["migProfileAllowlist"], f"{where}migProfileAllowlist", union)
    return union.conversion()


def difference(
    current: Mapping[str, frozenset[str]], wanted: Mapping[str, frozenset[str]]
) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """For each model (added, no longer named), of those where the two differ."""
    found = {}
    for model in sorted(current.keys() | wanted.keys()):
        before, after = current.get(model, frozenset()), wanted.get(model, frozenset())
        if before != after:
            found[model] = (after - before, before - after)
    return found


class _Union:
    """Profiles for each model, in the order in which models were met."""

    def __init__(self) -> None:
        self._models: dict[str, dict[str, None]] = {}
        self._memory: dict[tuple[str, str], int] = {}
        self._notes: list[Note] = []

    def model(self, name: str, where: str) -> Mapping[str, int] | None:
        """The known profiles of a model, None where nothing is known."""
        if name not in self._models:
            self._models[name] = {}
            if _known(name) is None:
                self._notes.append(Note(NoteCode.MODEL_NOT_KNOWN, where, name))
        return _known(name)

    def add(self, model: str, profile: str, where: str, code: NoteCode, count: int | None) -> None:
        """A profile that a geometry wants, ``count`` times at once."""
        known = self.model(model, where)
        present = PRESENT_LABELS.get(profile, profile)
        if known is not None and profile not in known and present in known:
            self._notes.append(Note(NoteCode.RENAMED, where, model, profile, present))
            profile = present
        if known is not None and profile not in known:
            self._notes.append(Note(NoteCode.NOT_NAMED_BY_NVML, where, model, profile))
            return
        if known is not None and count is not None and count > known[profile]:
            detail = f"{count} of at most {known[profile]}"
            self._notes.append(Note(NoteCode.COUNT_IMPOSSIBLE, where, model, profile, detail))
        if profile not in self._models[model]:
            self._models[model][profile] = None
            self._notes.append(Note(code, where, model, profile))

    def memory(self, model: str, profile: str, mib: int, where: str) -> None:
        """What a geometry says of a profile's memory: NVML will say what it is."""
        before = self._memory.setdefault((model, profile), mib)
        if before != mib:
            detail = f"{before} and {mib} MiB"
            self._notes.append(Note(NoteCode.MEMORY_CONTRADICTS, where, model, profile, detail))

    def note(self, note: Note) -> None:
        """A choice that is no profile's."""
        self._notes.append(note)

    def conversion(self) -> Conversion:
        """Models with the same profiles share an entry; models without any have none."""
        shared: dict[tuple[str, ...], list[str]] = {}
        for model, profiles in self._models.items():
            if profiles:
                shared.setdefault(tuple(sorted(profiles, key=_order)), []).append(model)
        entries = (AllowlistEntry(tuple(models), names) for names, models in shared.items())
        return Conversion(tuple(entries), tuple(self._notes))


def _read_legacy(value: object, where: str, union: _Union) -> None:
    for index, item in enumerate(_list(value, where)):
        at = f"{where}[{index}]"
        models = _models(item, at)
        allowed = f"{at}.allowedGeometries"
        geometries = _list(_mapping(item, at).get("allowedGeometries"), allowed)
        for place, geometry in enumerate(geometries):
            for spot, instance in _instances(geometry, f"{allowed}[{place}]"):
                profile, count = _instance(instance, spot)
                for model in models:
                    union.add(model, profile, spot, NoteCode.FROM_GEOMETRY, count)
                    if "memory" in instance:
                        mib = _whole(instance["memory"], f"{spot}.memory", 1, 10**6)
                        union.memory(model, profile, mib, spot)


def _instances(geometry: object, where: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The instances of a geometry: a list of them, a group with ``geometries``, or one alone."""
    if isinstance(geometry, dict) and "name" in geometry:
        yield where, geometry
        return
    if isinstance(geometry, dict):
        geometry, where = geometry.get("geometries"), f"{where}.geometries"
    for index, item in enumerate(_list(geometry, where)):
        yield f"{where}[{index}]", _mapping(item, f"{where}[{index}]")


def _instance(item: dict[str, object], where: str) -> tuple[str, int]:
    return _profile(item.get("name"), f"{where}.name"), _whole(
        item.get("count", 1), f"{where}.count", 1, _COUNT_MOST
    )


def _read_allowlist(value: object, where: str, union: _Union) -> None:
    for index, item in enumerate(_list(value, where)):
        at = f"{where}[{index}]"
        for model in _models(item, at):
            for profile in _list(_mapping(item, at).get("profiles"), f"{at}.profiles"):
                name = _profile(profile, f"{at}.profiles")
                union.add(model, name, at, NoteCode.FROM_ALLOWLIST, None)


def _read_parted(value: object, union: _Union) -> None:
    for name, parts in _mapping(value, _PARTED).items():
        for index, item in enumerate(_list(parts, f"{_PARTED}.{name}")):
            at = f"{_PARTED}.{name}[{index}]"
            part = _mapping(item, at)
            if part.get("mig-enabled") is not True:
                union.note(Note(NoteCode.WITHOUT_MIG, at, ""))
                continue
            wanted = _mapping(part.get("mig-devices") or {}, f"{at}.mig-devices")
            for text, count in wanted.items():
                profile = _profile(text, f"{at}.mig-devices")
                number = _whole(count, f"{at}.mig-devices.{text}", 0, _COUNT_MOST)
                if not number:
                    continue
                for model in _parted_models(part.get("device-filter"), profile, number, at, union):
                    union.add(model, profile, at, NoteCode.FROM_GEOMETRY, number)


def _parted_models(
    filters: object, profile: str, count: int, where: str, union: _Union
) -> list[str]:
    """Models of a device filter; without one, every known model that takes so many of them."""
    if not filters:
        found = [model for model, known in KNOWN_PROFILES.items() if known.get(profile, 0) >= count]
        union.note(Note(NoteCode.ANY_MODEL, where, ", ".join(found), profile))
        return found
    named = [filters] if isinstance(filters, str) else _list(filters, f"{where}.device-filter")
    models = []
    for item in named:
        model = PCI_MODELS.get(str(item).upper().replace("0X", "0x"))
        if model is None:
            union.note(Note(NoteCode.FILTER_NOT_KNOWN, where, "", profile, str(item)))
        else:
            models.append(model)
    return models


def _models(item: object, where: str) -> list[str]:
    found = _list(_mapping(item, where).get("models"), f"{where}.models")
    for name in found:
        if not isinstance(name, str) or not name.strip():
            raise InvalidPolicy(f"{where}.models", name, "names of GPU models")
    return [str(name) for name in found]


def _known(model: str) -> Mapping[str, int] | None:
    """What NVML names on the boards that a model's name stands for."""
    boards = [KNOWN_PROFILES[name] for name in reported_names(model, KNOWN_PROFILES)]
    if not boards:
        return None
    return {name: max(board.get(name, 0) for board in boards) for board in boards for name in board}


def _profile(value: object, where: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidPolicy(where, value, "a profile such as 1g.5gb or 1g.5gb+me")
    return value


def _order(profile: str) -> tuple[int, int, str]:
    found = _NAME.fullmatch(profile)
    return (int(found[1]), int(found[2]), found[3]) if found else (0, 0, profile)


def _whole(value: object, where: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidPolicy(where, value, f"a whole number in {least}…{most}")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list) or not value:
        raise InvalidPolicy(where, value, "a list that is not empty")
    return value


def _mapping(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidPolicy(where, value, "a mapping")
    return value


def _check_finite(value: object, where: str, above: tuple[int, ...] = ()) -> None:
    """YAML's anchors can make a document contain itself."""
    if not isinstance(value, dict | list):
        return
    if id(value) in above or len(above) > 20:
        raise InvalidPolicy(
            where or "configuration", "…", "a document that does not contain itself"
        )
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        _check_finite(item, f"{where}.{key}" if where else str(key), (*above, id(value)))
