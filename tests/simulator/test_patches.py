"""Patches beyond what the contract suite shows through the API."""

from __future__ import annotations

from typing import Any

import pytest

from hami_web.simulator.patches import MERGE, STRATEGIC, apply_patch, json_patch, merge_patch
from hami_web.simulator.problems import ApiProblem


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # the test cases of RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_the_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/list/1", "value": 9}, {"list": [1, 9, 2]}),
        ({"op": "add", "path": "/list/-", "value": 3}, {"list": [1, 2, 3]}),
        ({"op": "remove", "path": "/list/0"}, {"list": [2]}),
        ({"op": "replace", "path": "/list/0", "value": 5}, {"list": [5, 2]}),
        ({"op": "move", "from": "/list/0", "path": "/first"}, {"list": [2], "first": 1}),
        ({"op": "copy", "from": "/list", "path": "/a~1b"}, {"list": [1, 2], "a/b": [1, 2]}),
        ({"op": "replace", "path": "", "value": {"x": 1}}, {"x": 1}),
    ],
)
def test_json_patch_operations(operation: Any, result: Any) -> None:
    assert json_patch({"list": [1, 2]}, [operation]) == result


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ({"op": "add", "path": "/list/9", "value": 1}, 422),
        ({"op": "replace", "path": "/absent", "value": 1}, 422),
        ({"op": "remove", "path": ""}, 422),
        ({"op": "test", "path": "/list/0", "value": 2}, 422),
        ({"op": "spin", "path": "/list"}, 400),
        ({"op": "add", "path": "list", "value": 1}, 400),
        ("add", 400),
    ],
)
def test_json_patches_that_cannot_be_applied(operation: Any, code: int) -> None:
    with pytest.raises(ApiProblem) as caught:
        json_patch({"list": [1, 2]}, [operation])
    assert caught.value.code == code


def test_a_strategic_patch_deletes_an_entry_by_its_key() -> None:
    document = {"status": {"conditions": [{"type": "A", "x": 1}, {"type": "B"}]}}
    patch = {
        "status": {
            "$setElementOrder/conditions": [{"type": "A"}],
            "conditions": [{"type": "B", "$patch": "delete"}, {"type": "A", "y": 2}],
        }
    }
    patched = apply_patch(STRATEGIC, document, patch)
    assert patched == {"status": {"conditions": [{"type": "A", "x": 1, "y": 2}]}}


def test_other_strategic_directives_are_unsupported() -> None:
    with pytest.raises(ApiProblem, match=r"\$retainKeys") as caught:
        apply_patch(STRATEGIC, {}, {"spec": {"$retainKeys": ["a"]}})
    assert caught.value.code == 415


def test_a_patch_that_is_no_object_is_refused() -> None:
    with pytest.raises(ApiProblem) as caught:
        apply_patch(MERGE, {}, [1])
    assert caught.value.code == 400
