"""What an admission review asks and answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from hami_web.cluster.views import PodView


@dataclass(frozen=True, slots=True)
class AdmissionCall:
    """A Pod under review. A Pod of a controller has no name yet, only ``generateName``.

    ``old`` is the Pod before an update; ``user`` who wants the write.
    """

    operation: str
    pod: PodView
    display_name: str
    old: PodView | None = None
    user: str = ""


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One JSON Patch operation; ``path`` is an escaped JSON Pointer. ``remove`` has no value."""

    op: str
    path: str
    value: object = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Allowed with changes and warnings, or refused with a text for the user."""

    refusal: str | None = None
    patch: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def escape(key: str) -> str:
    """A key as one step of a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")
