"""The part of CEL that policies are written in: values, errors, and what is refused."""

from __future__ import annotations

import pytest

from hami_web.simulator.cel import parse
from hami_web.simulator.cel_values import CelError

SCOPE = {
    "object": {"a": {"b": [1, 2]}, "key/x": "y", "n": None, "labels": {"one": "1", "two": "2"}},
    "empty": {},
    "yes": True,
}


@pytest.mark.parametrize(
    "source",
    [
        "true",
        "!false && yes",
        "1 == 1 && 'a' != \"b\"",
        "1 != true",
        "object.a.b[1] == 2",
        "object['key/x'] == 'y'",
        "object.n == null",
        "has(object.a.b) && !has(object.a.c) && !has(empty.a)",
        "'one' in object.labels && 2 in object.a.b && !(3 in object.a.b)",
        "object.labels.all(k, object.labels[k].size() == 1)",
        "object.a.b.exists(n, n > 1) && object.a.b.filter(n, n > 1) == [2]",
        "'hami-' + 'x' == 'hami-x' && [1] + [2] == object.a.b",
        "'abc'.startsWith('ab') && 'abc'.endsWith('c') && 'abc'.contains('b')",
        "size(object.labels) == 2 && size('abc') == 3",
        "(has(empty.a) ? empty.a : 'none') == 'none'",
        "true ? yes : empty.a",
        "1 < 2 && 2 <= 2 && 'b' > 'a' && 2 >= 1",
        "false || true && true",
        "'it\\'s' == \"it's\"",
    ],
)
def test_a_true_expression_is_true(source: str) -> None:
    assert parse(source).truth(SCOPE) is True


@pytest.mark.parametrize("source", ["empty.a || yes", "yes || empty.a", "!(empty.a && false)"])
def test_a_side_that_decides_hides_the_error_of_the_other(source: str) -> None:
    assert parse(source).truth(SCOPE) is True


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("empty.a", "no such key: 'a'"),
        ("empty.a && yes", "no such key"),
        ("object.a.b[7] == 1", "no such key: 7"),
        ("nobody == 1", "undeclared reference"),
        ("1", "is no bool"),
        ("'a' && yes", "is no bool"),
        ("1 + 'a' == 2", "no such overload"),
        ("1 < 'a'", "no such overload"),
        ("has(object.n.x)", "has no fields"),
        ("(1).startsWith('a')", "is no string"),
    ],
)
def test_what_has_no_value_is_an_error(source: str, why: str) -> None:
    with pytest.raises(CelError, match=why):
        parse(source).truth(SCOPE)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 +",
        "(1",
        "a b",
        "object.?a",
        "object[?'a']",
        "object.a.orValue('')",
        "{'a': 1}",
        "a # b",
        "has(x)",
        "matches('a', 'b')",
        "'a'.startsWith()",
        "x.all(1, true)",
        "1.5 == 1.5",
    ],
)
def test_what_is_not_part_of_it_is_refused_when_it_is_read(source: str) -> None:
    with pytest.raises(CelError):
        parse(source)
