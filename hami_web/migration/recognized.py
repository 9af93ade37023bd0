"""Whose program an object is, by the names and images that its own chart gives it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from hami_web.core.mig_owner import operand

_HAMI_IMAGE: Final = re.compile(r"(?:^|/)hami:v?(\d+)\.(\d+)")
_HAMI_ANY: Final = re.compile(r"(?:^|/)hami(?::|@|$)")
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
LEGACY_IDENTITY: Final = re.compile(r"GPU-[0-9A-Za-z-]+\[\d+-\d+\]")
"""``GPU-UUID[template-slot]``, which HAMi up to 2.9 writes for an instance."""
DYNAMIC_SINCE: Final = (2, 10)
"""The first release of HAMi that reserves placements."""
MIG_MANAGER: Final = "MIG Manager"
HAMI_PLUGIN: Final = "HAMi's device plugin"


def hami_version(images: Iterable[str]) -> tuple[int, int] | None:
    """Release of HAMi by an image's tag; None without one that tells."""
    for image in images:
        found = _HAMI_IMAGE.search(image)
        if found:
            return int(found[1]), int(found[2])
    return None


def is_hami(images: Iterable[str]) -> bool:
    """Whether an image is HAMi's, of whatever release."""
    return any(_HAMI_ANY.search(image) for image in images)


def component(labels: Mapping[str, str]) -> str:
    """``hami-scheduler`` and so on, as HAMi's chart labels its parts."""
    return labels.get("app.kubernetes.io/component", "")


def program(labels: Mapping[str, str]) -> str:
    """Which program that cuts or offers GPUs this is; empty for every other."""
    if component(labels) == "hami-device-plugin":
        return HAMI_PLUGIN
    return operand(labels)


def release(text: str) -> tuple[int, int] | None:
    """Major and minor of a version such as ``v1.20.2`` or ``1.30+``; None for other texts."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2])) if found else None
