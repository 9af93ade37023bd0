"""Words in the reader's language, from a catalogue beside this module.

``tr`` translates a text now; ``noted`` only marks one that is translated when it is shown. A
language is chosen by ``LC_ALL``, ``LC_MESSAGES`` or ``LANG``, the first that is set.
"""

from __future__ import annotations

import gettext
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hami_web.core.reasons import Reason

DOMAIN: Final = "kubectl"
FOLDER: Final = Path(__file__).parent / "locale"


class _Language:
    catalogue: gettext.NullTranslations = gettext.NullTranslations()


def use_language(environment: Mapping[str, str]) -> None:
    """From now on speak the language of a process's environment."""
    named = next(filter(None, map(environment.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    languages = ["zh_Hans"] if named.lower().startswith("zh") else []
    _Language.catalogue = (
        gettext.translation(DOMAIN, FOLDER, languages) if languages else gettext.NullTranslations()
    )


def tr(text: str) -> str:
    """The text in the reader's language."""
    return _Language.catalogue.gettext(text)


def noted(text: str) -> str:
    """The text as it is; ``tr`` is called on it later."""
    return text


STATES: Final = {
    "free": noted("free"),
    "held": noted("held"),
    "reserved": noted("reserved"),
    "realized": noted("realized"),
    "terminating": noted("terminating"),
    "blocked": noted("blocked"),
    "foreign": noted("foreign"),
    "conflicted": noted("conflict"),
    "unavailable": noted("unavailable"),
}
REASONS: Final = {
    Reason.NOT_HEALTHY: noted("the GPU is not healthy"),
    Reason.CORDONED: noted("the GPU is cordoned"),
    Reason.TYPE_MISMATCH: noted("the GPU is of another kind than asked for, or not in MIG mode"),
    Reason.UUID_MISMATCH: noted("the Pod excludes this GPU by UUID"),
    Reason.NUMA_MISMATCH: noted("the devices are not on one NUMA node"),
    Reason.INSUFFICIENT_MEMORY: noted(
        "too few memory slices are free, or no profile has so much memory"
    ),
    Reason.INSUFFICIENT_CORES: noted("no profile has enough cores"),
    Reason.TOPOLOGY_INFEASIBLE: noted("no legal placement of the profile is free"),
    Reason.INSUFFICIENT_DEVICES: noted("fewer devices fit than the Pod asks for"),
    Reason.UNKNOWN_PROFILE: noted("the GPU does not offer the profile"),
    Reason.CAPABILITY_INVALID: noted("the published capability contradicts itself"),
    Reason.CONFLICT: noted("reservations on the GPU overlap"),
    Reason.EXCLUSIVE: noted("the GPU is used exclusively"),
    Reason.QUOTA: noted("the namespace's quota does not allow it"),
    Reason.NODE_UNREGISTERED: noted("the node publishes no GPU capability"),
    Reason.NODE_STALE: noted("the node is not ready or its agent is silent"),
    Reason.NODE_DOUBT: noted("it is not known what is taken on the node"),
    Reason.NODE_OTHER_OWNER: noted(
        "something else may change the MIG layout of the node's GPUs: it must be stopped by its "
        "controller, and its sign on the node taken away"
    ),
}
OUTCOMES: Final = {
    "held": noted("has a place"),
    "refused": noted("refused"),
    "invalid": noted("not a valid request"),
    "bound": noted("bound"),
    "bind_failed": noted("binding failed"),
}
DRIFTS: Final = {
    "blocked": noted("an instance that no reservation explains, or one that cannot be removed"),
    "conflicted": noted("two owners claim the same memory slices"),
    "unrealized": noted("reserved on a bound Pod; the instance does not exist yet"),
    "closed": noted("the node takes no new work"),
}


def reason(code: str) -> str:
    """A reason's words with its code; an unknown code is shown as it is."""
    words = {str(known): text for known, text in REASONS.items()}.get(code)
    return code if words is None else f"{tr(words)} ({code})"
