"""Label and field selectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from hami_web.simulator import problems
from hami_web.simulator.documents import JsonObject, lookup
from hami_web.simulator.resources import Resource

Predicate = Callable[[JsonObject], bool]
_LabelTest = Callable[[Mapping[str, str]], bool]

_KEY = r"[A-Za-z0-9][A-Za-z0-9_.\-/]*"
_SET = re.compile(rf"^({_KEY})\s+(in|notin)\s+\(([^()]*)\)$")
_EQUALITY = re.compile(rf"^({_KEY})\s*(==|=|!=)\s*([A-Za-z0-9_.\-]*)$")
_EXISTS = re.compile(rf"^(!?)\s*({_KEY})$")
_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?![^(]*\))")
_EVERY_KIND = frozenset({"metadata.name", "metadata.namespace"})


def everything(_: JsonObject) -> bool:
    """The predicate of an absent selector."""
    return True


def label_predicate(selector: str) -> Predicate:
    """``a=b,c!=d,e in (f,g),h notin (i),j,!k``; raises 400 for anything else."""
    if not selector.strip():
        return everything
    tests = [_label_test(part.strip()) for part in _COMMA_OUTSIDE_BRACKETS.split(selector)]

    def matches(document: JsonObject) -> bool:
        labels = lookup(document, "metadata.labels") or {}
        return all(test(labels) for test in tests)

    return matches


def _label_test(text: str) -> _LabelTest:
    if found := _SET.match(text):
        key, operator, inner = found.groups()
        values = {value.strip() for value in inner.split(",")}
        return _in(key, values) if operator == "in" else _not_in(key, values)
    if found := _EQUALITY.match(text):
        key, operator, value = found.groups()
        return _not_in(key, {value}) if operator == "!=" else _in(key, {value})
    if found := _EXISTS.match(text):
        absent, key = found.groups()
        return (lambda labels: key not in labels) if absent else (lambda labels: key in labels)
    raise problems.bad_request(f"unable to parse requirement: {text!r}")


def _in(key: str, values: set[str]) -> _LabelTest:
    return lambda labels: key in labels and labels[key] in values


def _not_in(key: str, values: set[str]) -> _LabelTest:
    return lambda labels: labels.get(key) not in values


def selector_object_predicate(selector: JsonObject | None) -> Predicate:
    """A ``metav1.LabelSelector``; None selects nothing, an empty one everything."""
    if selector is None:
        return lambda _: False
    tests = [_in(key, {value}) for key, value in (selector.get("matchLabels") or {}).items()]
    tests += [_expression_test(entry) for entry in selector.get("matchExpressions") or []]

    def matches(document: JsonObject) -> bool:
        labels = lookup(document, "metadata.labels") or {}
        return all(test(labels) for test in tests)

    return matches


def _expression_test(entry: JsonObject) -> _LabelTest:
    key, values = str(entry.get("key")), set(entry.get("values") or [])
    match entry.get("operator"):
        case "In":
            return _in(key, values)
        case "NotIn":
            return _not_in(key, values)
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
        case operator:
            raise problems.bad_request(f'"{operator}" is not a valid label selector operator')


def field_predicate(selector: str, resource: Resource) -> Predicate:
    """``spec.nodeName=a,status.phase!=Failed``; raises 400 for a field the kind does not index."""
    if not selector.strip():
        return everything
    tests = [_field_test(part.strip(), resource) for part in selector.split(",")]
    return lambda document: all(test(document) for test in tests)


def _field_test(text: str, resource: Resource) -> Predicate:
    found = re.match(r"^([^=!]+?)(==|=|!=)(.*)$", text)
    if found is None:
        raise problems.bad_request(f"invalid selector: {text!r}; can't understand {text!r}")
    path, operator, wanted = found.groups()
    if path not in _EVERY_KIND and path not in resource.field_labels:
        raise problems.bad_request(f"field label not supported: {path}")

    def equals(document: JsonObject) -> bool:
        value = lookup(document, "source.component" if path == "source" else path)
        text = str(value).lower() if isinstance(value, bool) else str(value or "")
        if path == "spec.unschedulable":
            text = text or "false"
        return text == wanted

    return (lambda document: not equals(document)) if operator == "!=" else equals
