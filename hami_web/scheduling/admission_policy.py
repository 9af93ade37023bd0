"""What the cluster's admin lets the webhook refuse, read from the policy file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, cast

from hami_web.core.errors import InvalidPolicy

Refusing = Literal["allow", "warn", "refuse"]
ALLOW: Final = "allow"
WARN: Final = "warn"
REFUSE: Final = "refuse"

_CHOICES: Final = (ALLOW, WARN, REFUSE)
_FIELDS: Final = {
    "severalDevicesPerContainer": "several_devices",
    "legacyProfileResources": "legacy_profiles",
    "unknownSizes": "unknown_sizes",
}


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """What happens to Pods of each kind: they pass, pass with a warning, or are refused.

    ``several_devices``: a container wants more than one MIG device, of which one process can use
    only one. ``legacy_profiles``: a container wants ``nvidia.com/mig-…``, which no agent of ours
    offers. ``unknown_sizes``: no GPU model of the cluster has a profile of that size.
    """

    several_devices: Refusing = WARN
    legacy_profiles: Refusing = REFUSE
    unknown_sizes: Refusing = REFUSE


def parse_admission_policy(document: object, where: str = "admission") -> AdmissionPolicy:
    """Check a mapping as read from YAML; an absent section means the defaults.

    Raises :class:`InvalidPolicy` naming the field, the value and what is allowed.
    """
    if document is None:
        return AdmissionPolicy()
    if not isinstance(document, dict):
        raise InvalidPolicy(where, document, "a mapping")
    chosen: dict[str, Refusing] = {}
    for key, value in cast(dict[object, object], document).items():
        field = _FIELDS.get(str(key))
        if field is None:
            raise InvalidPolicy(f"{where}.{key}", value, f"only {', '.join(_FIELDS)}")
        if value not in _CHOICES:
            raise InvalidPolicy(f"{where}.{key}", value, ", ".join(_CHOICES))
        chosen[field] = value
    return AdmissionPolicy(**chosen)
