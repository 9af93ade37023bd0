"""The part of the Common Expression Language that admission policies of ours are written in.

Values are those of JSON. What is not part of it (optional values, extension libraries, types, cost
limits) is refused when a policy is read, so that nothing is taken for checked that was not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hami_web.simulator.cel_values import (
    MACROS,
    METHODS,
    CelError,
    Evaluate,
    Scope,
    added,
    as_bool,
    as_mapping,
    decided_by,
    indexed,
    related,
    selected,
    size_of,
    variable_of,
)

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>\d+)|(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<sign>==|!=|<=|>=|&&|\|\||[-+!<>()\[\].,?:]))"""
)
_ESCAPE: Final = re.compile(r"\\(.)")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_RELATIONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression."""

    source: str
    evaluate: Evaluate

    def truth(self, scope: Scope) -> bool:
        """Its value, which must be a bool. Raises :class:`CelError`."""
        return as_bool(self.evaluate(scope))


def parse(source: str) -> Expression:
    """Raises :class:`CelError` for what is not in this part of the language."""
    parser = _Parser(_tokens(source), source)
    evaluate = parser.conditional()
    parser.end()
    return Expression(source, evaluate)


def _tokens(source: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position, end = 0, len(source.rstrip())
    while position < end:
        match = _TOKEN.match(source, position)
        if match is None:
            raise CelError(f"cannot be read from {source[position : position + 20]!r}")
        kind = str(match.lastgroup)
        found.append((kind, match[kind]))
        position = match.end()
    return found


class _Parser:
    """Recursive descent; each method returns the evaluation of what it read."""

    def __init__(self, tokens: list[tuple[str, str]], source: str) -> None:
        self._tokens = [*tokens, ("end", "")]
        self._source = source
        self._at = 0

    def end(self) -> None:
        if self._kind() != "end":
            raise CelError(f"unexpected {self._text()!r} in {self._source!r}")

    def conditional(self) -> Evaluate:
        test = self._either()
        if not self._take("?"):
            return test
        yes = self.conditional()
        self._need(":")
        no = self.conditional()
        return lambda scope: yes(scope) if as_bool(test(scope)) else no(scope)

    def _either(self) -> Evaluate:
        left = self._both()
        while self._take("||"):
            left = decided_by(left, self._both(), decisive=True)
        return left

    def _both(self) -> Evaluate:
        left = self._relation()
        while self._take("&&"):
            left = decided_by(left, self._relation(), decisive=False)
        return left

    def _relation(self) -> Evaluate:
        left = self._sum()
        if self._text() not in _RELATIONS or self._kind() == "text":
            return left
        sign = self._next()
        right = self._sum()
        return lambda scope: related(left(scope), sign, right(scope))

    def _sum(self) -> Evaluate:
        left = self._negation()
        while self._take("+"):
            left = added(left, self._negation())
        return left

    def _negation(self) -> Evaluate:
        if not self._take("!"):
            return self._member()
        inner = self._negation()
        return lambda scope: not as_bool(inner(scope))

    def _member(self) -> Evaluate:
        value = self._primary()
        while True:
            if self._take("["):
                value = indexed(value, self.conditional())
                self._need("]")
            elif self._take("."):
                value = self._field_or_call(value)
            else:
                return value

    def _field_or_call(self, value: Evaluate) -> Evaluate:
        name = self._name()
        if not self._take("("):
            return selected(value, name)
        if name in MACROS:
            variable = self._name()
            self._need(",")
            body = self.conditional()
            self._need(")")
            return MACROS[name](value, variable, body)
        arguments = self._arguments()
        if name not in METHODS or len(arguments) != METHODS[name][0]:
            raise CelError(f"{name} with {len(arguments)} arguments is not known here")
        call = METHODS[name][1]
        return lambda scope: call(value(scope), *(each(scope) for each in arguments))

    def _primary(self) -> Evaluate:
        kind, text = self._kind(), self._next()
        if kind == "number":
            return lambda _: int(text)
        if kind == "text":
            plain = _ESCAPE.sub(r"\1", text[1:-1])
            return lambda _: plain
        if text == "(":
            inner = self.conditional()
            self._need(")")
            return inner
        if text == "[":
            items = self._arguments("]")
            return lambda scope: [each(scope) for each in items]
        if kind == "name":
            return self._variable_or_call(text)
        raise CelError(f"unexpected {text!r} in {self._source!r}")

    def _variable_or_call(self, name: str) -> Evaluate:
        if name in _CONSTANTS:
            return lambda _: _CONSTANTS[name]
        if not self._take("("):
            return lambda scope: variable_of(scope, name)
        if name == "has":
            return self._presence()
        arguments = self._arguments()
        if name != "size" or len(arguments) != 1:
            raise CelError(f"{name} with {len(arguments)} arguments is not known here")
        return lambda scope: size_of(arguments[0](scope))

    def _presence(self) -> Evaluate:
        owner = self._primary()
        name = ""
        while self._take("."):
            owner = selected(owner, name) if name else owner
            name = self._name()
        self._need(")")
        if not name:
            raise CelError("has takes a field")
        return lambda scope: name in as_mapping(owner(scope))

    def _arguments(self, closing: str = ")") -> list[Evaluate]:
        found: list[Evaluate] = []
        while not self._take(closing):
            if found:
                self._need(",")
            found.append(self.conditional())
        return found

    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _text(self) -> str:
        return self._tokens[self._at][1]

    def _next(self) -> str:
        text = self._text()
        self._at += self._kind() != "end"
        return text

    def _take(self, sign: str) -> bool:
        found = self._kind() == "sign" and self._text() == sign
        self._at += found
        return found

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise CelError(f"{sign!r} is missing before {self._text()!r} in {self._source!r}")

    def _name(self) -> str:
        if self._kind() != "name":
            raise CelError(f"a name is missing before {self._text()!r} in {self._source!r}")
        return self._next()
