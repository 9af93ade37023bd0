"""The words of the dashboard, for states and codes, in the reader's language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from hami_web.core.reasons import Reason
from hami_web.dashboard.cells import Cell, CellState, Fit, GpuRow

TIMES: Final = "\N{MULTIPLICATION SIGN}"

STATE_WORDS: Final[dict[CellState, Promise]] = {
    CellState.FREE: _("free"),
    CellState.HELD: _("held"),
    CellState.BOUND: _("reserved"),
    CellState.REALIZED: _("realized"),
    CellState.TERMINATING: _("terminating"),
    CellState.BLOCKED: _("blocked"),
    CellState.CONFLICTED: _("conflict"),
    CellState.UNAVAILABLE: _("unavailable"),
}

STATE_MEANINGS: Final[dict[CellState, Promise]] = {
    CellState.FREE: _("nobody has these memory slices"),
    CellState.HELD: _("chosen for a Pod that is not bound yet"),
    CellState.BOUND: _("reserved on a bound Pod; the instance does not exist yet"),
    CellState.REALIZED: _("the instance exists and a Pod has it"),
    CellState.TERMINATING: _("its Pod is being deleted; the instance still exists"),
    CellState.BLOCKED: _("an instance that no reservation explains, or one that cannot be removed"),
    CellState.CONFLICTED: _("two owners claim the same memory slices; no new work here"),
    CellState.UNAVAILABLE: _("taken in a namespace that you may not see"),
}

NOTE_WORDS: Final[dict[str, Promise]] = {
    "unhealthy": _("the node's agent reports this GPU as unhealthy"),
    "cordoned": _("cordoned: takes no new work"),
    "conflict": _("reservations overlap: takes no new work"),
    "stale": _("the node is not ready or its agent is silent: takes no new work"),
    "unschedulable": _("the node is cordoned (unschedulable)"),
    "unregistered": _("the node publishes no GPU capability"),
    "doubt": _("it is not known what is taken here: takes no new work"),
    "other-owner": _(
        "something else may change the MIG layout here: nothing is placed, made or destroyed until "
        "it is stopped by its controller and its sign is taken away"
    ),
    "unavailable": _("something cannot be read here; you may not see the details"),
}


REASON_WORDS: Final[dict[str, Promise]] = {
    Reason.NOT_HEALTHY: _("the GPU is not healthy"),
    Reason.CORDONED: _("the GPU is cordoned"),
    Reason.TYPE_MISMATCH: _("the GPU is of another kind than asked for, or not in MIG mode"),
    Reason.UUID_MISMATCH: _("the Pod excludes this GPU by UUID"),
    Reason.NUMA_MISMATCH: _("the devices are not on one NUMA node"),
    Reason.INSUFFICIENT_MEMORY: _(
        "too few memory slices are free, or no profile has so much memory"
    ),
    Reason.INSUFFICIENT_CORES: _("no profile has enough cores"),
    Reason.TOPOLOGY_INFEASIBLE: _("no legal placement of the profile is free"),
    Reason.INSUFFICIENT_DEVICES: _("fewer devices fit than the Pod asks for"),
    Reason.UNKNOWN_PROFILE: _("the GPU does not offer the profile"),
    Reason.CAPABILITY_INVALID: _("the published capability contradicts itself"),
    Reason.CONFLICT: _("reservations on the GPU overlap"),
    Reason.EXCLUSIVE: _("the GPU is used exclusively"),
    Reason.QUOTA: _("the namespace's quota does not allow it"),
    Reason.NODE_UNREGISTERED: _("the node publishes no GPU capability"),
    Reason.NODE_STALE: _("the node is not ready or its agent is silent"),
    Reason.NODE_DOUBT: _("it is not known what is taken on the node"),
    Reason.NODE_OTHER_OWNER: _(
        "something else may change the MIG layout of the node's GPUs: it must be stopped by its "
        "controller, and its sign on the node taken away"
    ),
}


def reason_words(code: str) -> str:
    """Words for a reason's code; an unknown code is shown as it is, never hidden."""
    words = REASON_WORDS.get(code)
    return code if words is None else str(words)


OUTCOME_WORDS: Final[dict[str, Promise]] = {
    "held": _("held a place"),
    "refused": _("refused"),
    "invalid": _("not a valid request"),
    "bound": _("bound"),
    "bind_failed": _("binding failed"),
}

PHASE_WORDS: Final[dict[str, Promise]] = {
    "held": _("held"),
    "lapsed": _("lapsed"),
    "reserved": _("reserved"),
    "realized": _("realized"),
    "started": _("running"),
    "terminating": _("terminating"),
    "conflicted": _("conflict"),
    "released": _("released"),
}


def outcome_word(code: str) -> str:
    """A few words for what a decision ended in."""
    return str(OUTCOME_WORDS.get(code, code))


def phase_word(code: str) -> str:
    """One word for how far a reservation has come."""
    return str(PHASE_WORDS.get(code, code))


step_word = phase_word
"""One word for a step of a reservation's life: the phase that it leads to, or running."""


def state_word(state: CellState) -> str:
    """One or two words for a state."""
    return str(STATE_WORDS[state])


def note_words(code: str) -> str:
    """A sentence for a note's code; an unknown code is shown as it is, never hidden."""
    return str(NOTE_WORDS.get(code, code))


def memory_slices(count: int) -> str:
    """A number of memory slices with its unit."""
    return ngettext("%(count)d memory slice", "%(count)d memory slices", count) % {"count": count}


def mebibytes(amount: int) -> str:
    """An amount of memory in MiB with its unit and thousands set apart."""
    return f"{amount:,} MiB".replace(",", "\N{NARROW NO-BREAK SPACE}")


def describe_cell(cell: Cell) -> str:
    """All that is known of a cell in one line, for a pointer's tip and for screen readers."""
    size = memory_slices(cell.placement.size)
    where = gettext("placement %(placement)s (%(size)s)") % {
        "placement": cell.placement,
        "size": size,
    }
    memory = mebibytes(cell.memory_mib) if cell.memory_mib else ""
    parts = [cell.profile, state_word(cell.state), where, memory]
    if cell.pod:
        parts.append(gettext("Pod %(pod)s") % {"pod": cell.pod})
    return ", ".join(part for part in [*parts, cell.detail] if part)


def describe_rows(rows: Iterable[GpuRow], *, by_node: bool = False) -> str:
    """How many GPUs there are of each model, or of each node."""
    counted = Counter(row.node if by_node else row.model for row in rows)
    return " · ".join(f"{count} {TIMES} {name}" for name, count in counted.items())


def group_name(name: str) -> str:
    """The name of a node, a model or a pool; nodes without a pool have none."""
    return name or gettext("no pool")


def describe_fits(fits: tuple[Fit, ...]) -> str:
    """What still fits on a GPU, largest profile first; each count holds for that profile alone."""
    some = [f"{fit.profile} {TIMES}{fit.count}" for fit in reversed(fits) if fit.count]
    return " · ".join(some) if some else gettext("no profile fits")
