"""Operators, macros and methods of the Common Expression Language, on values of JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Scope = Mapping[str, Any]
Evaluate = Callable[[Scope], Any]


class CelError(Exception):
    """The expression cannot be read, or has no value for these inputs."""


def decided_by(left: Evaluate, right: Evaluate, *, decisive: bool) -> Evaluate:
    """One side that decides hides the other side's error, whichever it is."""

    def evaluate(scope: Scope) -> bool:
        try:
            first = as_bool(left(scope))
        except CelError:
            if as_bool(right(scope)) is decisive:
                return decisive
            raise
        return decisive if first is decisive else as_bool(right(scope))

    return evaluate


def related(left: Any, sign: str, right: Any) -> bool:
    if sign in ("==", "!="):
        return _equal(left, right) is (sign == "==")
    if sign == "in":
        found = right if isinstance(right, list) else list(as_mapping(right))
        return any(_equal(left, each) for each in found)
    if type(left) is not type(right) or not isinstance(left, int | str):
        raise CelError(f"no such overload: {left!r} {sign} {right!r}")
    ordered = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return bool(ordered[sign])


def _equal(left: Any, right: Any) -> bool:
    """True and 1 are two values, unlike in Python."""
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def added(left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(scope: Scope) -> Any:
        one, other = left(scope), right(scope)
        if type(one) is not type(other) or not isinstance(one, int | str | list):
            raise CelError(f"no such overload: {one!r} + {other!r}")
        return one + other

    return evaluate


def indexed(value: Evaluate, index: Evaluate) -> Evaluate:
    def evaluate(scope: Scope) -> Any:
        owner, key = value(scope), index(scope)
        try:
            return owner[key] if isinstance(owner, list) else as_mapping(owner)[key]
        except (KeyError, IndexError, TypeError):
            raise CelError(f"no such key: {key!r}") from None

    return evaluate


def selected(value: Evaluate, name: str) -> Evaluate:
    return indexed(value, lambda _: name)


def variable_of(scope: Scope, name: str) -> Any:
    if name not in scope:
        raise CelError(f"undeclared reference to {name!r}")
    return scope[name]


def as_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"{value!r} is no bool")
    return value


def as_mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CelError(f"{value!r} has no fields")
    return value


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else list(as_mapping(value))


def size_of(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(_items(value))


def _every(value: Evaluate, variable: str, body: Evaluate) -> Evaluate:
    return lambda scope: all(
        as_bool(body({**scope, variable: each})) for each in _items(value(scope))
    )


def _some(value: Evaluate, variable: str, body: Evaluate) -> Evaluate:
    return lambda scope: any(
        as_bool(body({**scope, variable: each})) for each in _items(value(scope))
    )


def _kept(value: Evaluate, variable: str, body: Evaluate) -> Evaluate:
    return lambda scope: [
        each for each in _items(value(scope)) if as_bool(body({**scope, variable: each}))
    ]


MACROS: Final = {"all": _every, "exists": _some, "filter": _kept}
METHODS: Final[dict[str, tuple[int, Callable[..., Any]]]] = {
    "startsWith": (1, lambda text, start: _string(text).startswith(_string(start))),
    "endsWith": (1, lambda text, end: _string(text).endswith(_string(end))),
    "contains": (1, lambda text, part: _string(part) in _string(text)),
    "size": (0, size_of),
}


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise CelError(f"{value!r} is no string")
    return value
