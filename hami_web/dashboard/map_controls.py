"""The choices above the map, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from hami_web.dashboard.cells import CellState
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.map_query import DENSITIES, GROUPS, SORTS, MapQuery
from hami_web.dashboard.wording import state_word

WORDS: Final[dict[str, Promise]] = {
    "node": _("Node"),
    "model": _("Model"),
    "pool": _("Pool"),
    "name": _("Name"),
    "free": _("Most free memory slices"),
    "fragmentation": _("Most fragmented"),
    "auto": _("by number of GPUs"),
    "comfortable": _("comfortable"),
    "compact": _("compact"),
    "dense": _("dense"),
}


@dataclass(frozen=True, slots=True)
class Option:
    """One choice."""

    value: str
    word: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Control:
    """One parameter of the map with its choices."""

    name: str
    title: str
    options: tuple[Option, ...]


def controls(query: MapQuery, shown: ClusterMap | None) -> list[Control]:
    """Every parameter beside search and view, with what the cluster has to choose from."""
    models = sorted((shown.models if shown else frozenset()) | {query.model} - {""})
    namespaces = sorted((shown.namespaces if shown else frozenset()) | {query.namespace} - {""})
    states = [(str(state), state_word(state)) for state in CellState]
    every = ("", gettext("all"))
    return [
        _control("model", gettext("Model"), [every, *((name, name) for name in models)], query),
        _control("namespace", gettext("Namespace"), [every, *((n, n) for n in namespaces)], query),
        _control("state", gettext("State"), [every, *states], query),
        _control("group", gettext("Group by"), _worded(GROUPS), query),
        _control("sort", gettext("Sort by"), _worded(SORTS), query),
        _control("density", gettext("Density"), _worded(DENSITIES), query),
    ]


def _worded(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, str(WORDS[value])) for value in values]


def _control(name: str, title: str, choices: Iterable[tuple[str, str]], query: MapQuery) -> Control:
    chosen = getattr(query, name)
    options = tuple(Option(value, word, value == chosen) for value, word in choices)
    return Control(name, title, options)
