"""``migProfileAllowlist``: which profiles the cluster permits on which GPU models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from hami_web.core.errors import InvalidPolicy

# Names of HAMi's default table that NVML never reports, with the names it does report for them.
# Sources: device names in published nvidia-smi listings of these boards.
_REPORTED_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "A100-40GB-PCIe": ("A100-PCIE-40GB",),
    "A100-80GB-PCIe": ("A100 80GB PCIe",),
    "A100-PCIE-80GB": ("A100 80GB PCIe",),
    "H100-PCIE-80GB": ("H100 PCIe",),
    "H100-SXM5-80GB": ("H100 80GB HBM3",),
    "H100-PCIE-94GB": ("H100 NVL",),
    "H100-SXM5-94GB": ("H100 SXM5 94GB",),
    "H100 on GH200": ("GH200 480GB", "GH200 120GB"),
    "H200-SXM5": ("H200",),
}
PRESENT_LABELS: Final[Mapping[str, str]] = {"7g.79gb": "7g.80gb"}
"""Labels that older drivers gave to a profile, with the present ones."""
_PROFILE_NAME: Final = re.compile(r"\d+g\.\d+gb(?:[+-][a-z0-9.+-]+)?")

Named = TypeVar("Named")


@dataclass(frozen=True, slots=True)
class AllowlistEntry:
    """Profiles permitted on some models; both lists are never empty."""

    models: tuple[str, ...]
    profiles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProfileAllowlist:
    """The cluster's policy. It permits profiles, it says nothing about capacity."""

    entries: tuple[AllowlistEntry, ...]

    def profiles_for(self, gpu_name: str) -> tuple[str, ...] | None:
        """Profiles permitted on a GPU by the name NVML reports, or None for an unlisted model.

        A model matches where its words stand together in the name (so ``H20`` is not ``H200``);
        of several, the one with the most words wins, then the first.
        """
        name = _words(gpu_name)
        best: tuple[int, AllowlistEntry] | None = None
        for entry in self.entries:
            weight = max(_match(model, name) for model in entry.models)
            if weight and (best is None or weight > best[0]):
                best = (weight, entry)
        return None if best is None else best[1].profiles

    def select(
        self, gpu_name: str, available: Mapping[str, Named]
    ) -> tuple[list[Named], list[str]]:
        """Split the permitted profiles into those a GPU has, and the names it does not have."""
        found: dict[str, Named] = {}
        missing: list[str] = []
        for wanted in self.profiles_for(gpu_name) or ():
            name = wanted if wanted in available else PRESENT_LABELS.get(wanted, wanted)
            if name in available:
                found[name] = available[name]
            else:
                missing.append(wanted)
        return list(found.values()), missing


def reported_names(model: str, boards: Iterable[str]) -> list[str]:
    """Of these names, as NVML reports them, those that a model of an allowlist matches best."""
    weights = {name: _match(model, _words(name)) for name in boards}
    exact = [name for name, weight in weights.items() if weight and weight == len(_words(name))]
    return exact or [name for name, weight in weights.items() if weight]


def parse_allowlist(value: object, where: str = "nvidia.migProfileAllowlist") -> ProfileAllowlist:
    """Check the list as read from YAML or JSON. Raises :class:`InvalidPolicy` naming the field."""
    if not isinstance(value, list) or not value:
        raise InvalidPolicy(where, value, "a list of entries with models and profiles")
    return ProfileAllowlist(
        tuple(_parse_entry(item, f"{where}[{position}]") for position, item in enumerate(value))
    )


def render_allowlist(entries: Iterable[AllowlistEntry]) -> str:
    """A device configuration in YAML with these entries; names are quoted as JSON has them."""
    lines = ["nvidia:", "  migProfileAllowlist:"]
    for entry in entries:
        lines.append(f"  - models: {json.dumps(list(entry.models))}")
        lines.append(f"    profiles: {json.dumps(list(entry.profiles))}")
    return "\n".join(lines) + "\n"


def _parse_entry(item: object, where: str) -> AllowlistEntry:
    if not isinstance(item, dict):
        raise InvalidPolicy(where, item, "a mapping with models and profiles")
    models = _texts(item.get("models"), f"{where}.models", "a GPU model")
    profiles = _texts(item.get("profiles"), f"{where}.profiles", "a profile such as 1g.5gb")
    for profile in profiles:
        if not _PROFILE_NAME.fullmatch(profile):
            raise InvalidPolicy(f"{where}.profiles", profile, "names such as 1g.5gb or 1g.5gb+me")
    return AllowlistEntry(models, profiles)


def _texts(value: object, where: str, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidPolicy(where, value, f"a list with at least {what}")
    for item in value:
        if not isinstance(item, str) or not _words(item):
            raise InvalidPolicy(where, item, what)
    return tuple(value)


def _words(text: str) -> list[str]:
    words = re.split(r"[\s_-]+", text.strip().lower())
    return [word for word in words if word and word != "nvidia"]


def _match(model: str, name: list[str]) -> int:
    """Number of words of the model found together in the name, 0 if they are not there."""
    return max(_run(_words(text), name) for text in _spellings(model))


def _spellings(model: str) -> Iterable[str]:
    return (model, *_REPORTED_NAMES.get(model, ()))


def _run(model: list[str], name: list[str]) -> int:
    size = len(model)
    found = any(name[start : start + size] == model for start in range(len(name) - size + 1))
    return size if found else 0
