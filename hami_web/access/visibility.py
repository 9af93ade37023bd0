"""Which namespaces a caller may see: the one rule for lists, maps, files, streams and totals.

What lies elsewhere has no name here: rows are left out, and where something is there all the same
(memory slices that are taken) it is called ``unavailable``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from django.db.models import Model, QuerySet

from hami_web.access.caller import Caller
from hami_web.access.errors import IdentityUnavailable
from hami_web.access.expiring import ExpiringAnswers
from hami_web.access.reviewer import reviewer
from hami_web.core import visible

M = TypeVar("M", bound=Model)
UNAVAILABLE: Final = visible.UNAVAILABLE
"""Stands for every name, state and text that a caller may not see."""
NAMES_S: Final = 10.0
"""How long the namespaces that a table knows are remembered."""
_names: ExpiringAnswers[tuple[str, str], frozenset[str]] = ExpiringAnswers(100)


class Visibility:
    """What one caller sees. Doubt hides."""

    def __init__(self, caller: Caller) -> None:
        self._scope = caller.namespaces
        self._user = caller.reviewed
        self._everything: bool | None = None

    @property
    def everything(self) -> bool:
        """Every namespace, also those that do not exist yet."""
        if self._everything is None:
            self._everything = self._scope is None and self._reviewed_everywhere()
        return self._everything

    def sees(self, namespace: str) -> bool:
        """Whether what lies in a namespace may be named; what lies in none always is."""
        return not namespace or namespace in self.among((namespace,))

    def among(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Those of the namespaces that may be seen."""
        if self.everything:
            return frozenset(namespaces)
        asked = frozenset(namespaces)
        if self._scope is not None:
            asked &= self._scope
        if self._user is None or not asked or self._reviewed_everywhere():
            return asked
        try:
            return reviewer().visible(self._user, asked)
        except IdentityUnavailable:
            return frozenset()

    def restrict(self, rows: QuerySet[M], column: str) -> QuerySet[M]:
        """Only the rows of namespaces that may be seen, and those of none."""
        if self.everything:
            return rows
        seen = self.among(_namespaces_of(rows.model, column))
        return rows.filter(**{f"{column}__in": ["", *sorted(seen)]})

    def _reviewed_everywhere(self) -> bool:
        if self._user is None:
            return True
        try:
            return reviewer().sees_everything(self._user)
        except IdentityUnavailable:
            return False


def _namespaces_of(model: type[Model], column: str) -> frozenset[str]:
    """The distinct namespaces of a table, each found by one seek of its index."""
    key = (model._meta.label, column)  # noqa: SLF001  # Django's documented name
    known = _names.get(key)
    if known is not None:
        return known[0]
    found: set[str] = set()
    rows = model._base_manager.order_by(column).values_list(column, flat=True)  # noqa: SLF001
    name = rows.first()
    while name is not None:
        found.add(name)
        name = rows.filter(**{f"{column}__gt": name}).first()
    return _names.put(key, frozenset(found), NAMES_S)
