"""Which columns of a large table a page shows: the parameter ``columns``, once per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.core.errors import InvalidField

NAME: Final = "columns"
_OF_FILES: Final = ("format", "theme")


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by name with their titles, in order. Rows are called by ``fixed``, which stays."""

    fixed: str
    titles: Mapping[str, Promise | str]


@dataclass(frozen=True, slots=True)
class Option:
    """A column that can be left out."""

    name: str
    title: str
    chosen: bool


@dataclass(frozen=True)
class Columns:
    """What an address chooses of a table. Nothing ``chosen`` means every column.

    ``others`` are the other parameters of the address, which a new choice keeps.
    """

    table: Table
    chosen: tuple[str, ...]
    others: tuple[tuple[str, str], ...]

    @cached_property
    def shown(self) -> dict[str, bool]:
        """Of every column, whether it is shown."""
        return {
            name: not self.chosen or name == self.table.fixed or name in self.chosen
            for name in self.table.titles
        }

    @property
    def count(self) -> int:
        return sum(self.shown.values())

    @property
    def beside(self) -> int:
        """How many columns a cell takes that stands beside the name of its row."""
        return max(1, self.count - 1)

    @property
    def options(self) -> list[Option]:
        return [
            Option(name, str(title), self.shown[name])
            for name, title in self.table.titles.items()
            if name != self.table.fixed
        ]

    @property
    def query(self) -> str:
        """For links that already have a query, empty where every column is shown."""
        return "".join(f"&{urlencode({NAME: name})}" for name in self.chosen)


def asked_columns(request: HttpRequest, table: Table) -> Columns:
    """The choice of an address, with commas or by repetition. Raises InvalidField."""
    names = [name for text in request.GET.getlist(NAME) for name in text.split(",") if name.strip()]
    for name in names:
        if name not in table.titles:
            raise InvalidField(NAME, name[:40], ", ".join(table.titles))
    others = [
        (name, text)
        for name, texts in request.GET.lists()
        for text in texts
        if name not in (NAME, *_OF_FILES)
    ]
    chosen = tuple(name for name in table.titles if name in names)
    return Columns(table, chosen, tuple(others))


MAP: Final = Table("node", {
    "node": _("Node"), "gpu": "GPU", "placement": _("Placement"), "state": _("State"),
    "profile": _("Profile"), "memory": _("Memory"), "pod": "Pod",
    "detail": _("MIG UUID or reason"),
})  # fmt: skip
ALERTS: Final = Table("what", {
    "state": _("State"), "what": _("What"), "where": _("Where"), "since": _("Since"),
    "seen": _("Last seen"), "details": _("Details, and what helps"),
})  # fmt: skip
AUDIT: Final = Table("who", {
    "when": _("When"), "who": _("Who"), "action": _("Action"), "object": _("Of what"),
    "outcome": _("Outcome"), "from": _("From where"), "details": _("Details"),
})  # fmt: skip
DRIFT: Final = Table("which", {
    "when": _("When"), "cause": _("Cause"), "done": _("What was done"), "object": _("Of what"),
    "which": _("Which"), "details": _("Details"), "compared": _("Compared now"),
    "reservation": _("Reservation on the Pod"), "node": _("The node: MIG UUID or block"),
    "mirror": _("The mirror"),
})  # fmt: skip
NAMESPACES: Final = Table("namespace", {
    "namespace": _("Namespace"), "reservations": _("Reservations"),
    "realized": _("of these realized"), "memory_slices": _("Memory slices"),
    "memory": _("Memory"), "waiting": _("Waiting Pods"), "gpu_hours": _("GPU-hours"),
    "alerts": _("Alerts"),
})  # fmt: skip
