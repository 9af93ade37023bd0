"""What an address needs; one that declares nothing is refused to everyone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from hami_web.access.roles import Verb

_View = TypeVar("_View", bound=Callable[..., Any])
FRAGMENT: Final = "X-Fragment"
"""Header by which an open page asks for its content alone: a script reads the answer."""
_NAME: Final = "declared_access"


@dataclass(frozen=True, slots=True)
class Declaration:
    """``verb`` None: open to everyone. ``fragment``: fetched by a script, so never redirected."""

    verb: Verb | None
    fragment: bool = False


PUBLIC: Final = Declaration(None)


def public(view: _View) -> _View:
    """Nothing of the cluster or of people is told here."""
    setattr(view, _NAME, PUBLIC)
    return view


def needs(verb: Verb, *, fragment: bool = False) -> Callable[[_View], _View]:
    """Only for callers who may do this."""

    def declare(view: _View) -> _View:
        setattr(view, _NAME, Declaration(verb, fragment))
        return view

    return declare


def declaration_of(view: Any, method: str) -> Declaration | None:
    """That of a view as the resolver has it, or of a DRF view; None where it has none.

    DRF views name a ``verb``, or ``verbs`` by method where they differ.
    """
    found = getattr(view, _NAME, None)
    if isinstance(found, Declaration):
        return found
    owner = getattr(view, "cls", view)
    verb = getattr(owner, "verbs", {}).get(method, getattr(owner, "verb", None))
    return Declaration(verb) if isinstance(verb, Verb) else None
