"""A wish as people type it: ``3g.20gb x2``, ``20 GiB``, ``20000``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidField
from hami_web.core.request import ContainerSpec, PodRequest, parse_pod_request
from hami_web.dashboard.wording import TIMES

PODS_MAX: Final = 64
DEVICES_MAX: Final = 64
ALLOWED: Final = (
    "a profile as 3g.20gb, or memory as 20000 MiB or 20 GiB, and x2 for two such Pods "
    f"(at most {PODS_MAX})"
)
_WISH: Final = re.compile(
    r"(?:(?P<profile>\d+g\.\d+gb(?:[+-][a-z.]+)?)|(?P<amount>\d{1,9})\s*(?P<unit>MiB|Mi|GiB|Gi)?)"
    r"(?:\s*[x*\u00d7]\s*(?P<pods>\d{1,4}))?",
    re.IGNORECASE,
)
_MIB: Final = {"": 1, "mib": 1, "mi": 1, "gib": 1024, "gi": 1024}


class InvalidWish(InvalidField):
    """A wish that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Wish:
    """``pods`` equal Pods of one container with ``devices`` devices each.

    Either ``profile`` is named or ``memory_mib`` is given, in MiB.
    """

    profile: str = ""
    memory_mib: int = 0
    pods: int = 1
    devices: int = 1

    def request(self) -> PodRequest:
        """What such a Pod would ask for. Raises InvalidRequest as the extender would."""
        limits: dict[str, str | int] = {keys.RESOURCE_COUNT: self.devices}
        if self.memory_mib:
            limits[keys.RESOURCE_MEMORY] = self.memory_mib
        annotations = {keys.POD_PROFILE: self.profile} if self.profile else {}
        return parse_pod_request([ContainerSpec("container", limits)], annotations)

    @property
    def words(self) -> str:
        """As it would be typed."""
        what = self.profile or f"{self.memory_mib} MiB"
        return f"{what} {TIMES}{self.pods}" if self.pods > 1 else what


def parse_wish(text: str, devices: str = "1") -> Wish:
    """Read a wish. Raises InvalidWish that names what is allowed."""
    found = _WISH.fullmatch(text.strip())
    if found is None:
        raise InvalidWish("wish", text, ALLOWED)
    pods = int(found["pods"] or 1)
    if not 1 <= pods <= PODS_MAX:
        raise InvalidWish("wish", text, ALLOWED)
    if not (devices.isascii() and devices.isdigit() and len(devices) < 4):
        raise InvalidWish("devices", devices, f"a whole number in 1…{DEVICES_MAX}")
    if not 1 <= int(devices) <= DEVICES_MAX:
        raise InvalidWish("devices", devices, f"a whole number in 1…{DEVICES_MAX}")
    memory_mib = int(found["amount"] or 0) * _MIB[(found["unit"] or "").lower()]
    if not found["profile"] and memory_mib == 0:
        raise InvalidWish("wish", text, ALLOWED)
    profile = (found["profile"] or "").lower()
    return Wish(profile, memory_mib, pods, int(devices))
