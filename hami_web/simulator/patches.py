"""Merge patch (RFC 7386), JSON patch (RFC 6902) and the plain cases of strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

from hami_web.simulator.documents import JsonObject
from hami_web.simulator.problems import ApiProblem, bad_request, unsupported_media_type

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

# List fields that a strategic merge patch merges by a key instead of replacing them.
_MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "taints": "key",
    "addresses": "type",
    "ownerReferences": "uid",
    "webhooks": "name",
}


def apply_patch(content_type: str, document: JsonObject, patch: Any) -> JsonObject:
    """The patched document; raises 400, 415 or 422. ``document`` may be changed."""
    if content_type == JSON_PATCH:
        return json_patch(document, patch)
    if content_type not in (MERGE, STRATEGIC):
        accepted = f"{JSON_PATCH}, {MERGE}, {STRATEGIC}"
        raise unsupported_media_type(content_type, accepted)
    if not isinstance(patch, dict):
        raise bad_request(f"a patch must be a JSON object, found {type(patch).__name__}")
    merge = merge_patch if content_type == MERGE else _strategic
    result = merge(document, patch)
    if not isinstance(result, dict):
        raise bad_request("the patch does not leave an object")
    return result


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _strategic(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$setElementOrder/"):
            continue
        if key.startswith("$"):
            raise unsupported_media_type(
                f"{STRATEGIC} with {key}", "patches without that directive"
            )
        if value is None:
            result.pop(key, None)
        elif isinstance(value, list) and key in _MERGE_KEYS:
            result[key] = _merge_list(result.get(key) or [], value, _MERGE_KEYS[key])
        else:
            result[key] = _strategic(result.get(key), value)
    return result


def _merge_list(target: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    merged = {entry.get(merge_key): entry for entry in target}
    for entry in patch:
        if not isinstance(entry, dict) or merge_key not in entry:
            raise bad_request(f"an entry of the patch lacks its merge key {merge_key!r}")
        identity = entry[merge_key]
        if entry.get("$patch") == "delete":
            merged.pop(identity, None)
        else:
            merged[identity] = _strategic(merged.get(identity), entry)
    return list(merged.values())


def json_patch(document: JsonObject, operations: Any) -> JsonObject:
    """RFC 6902, all or nothing; raises 400 for a malformed patch and 422 for one that fails."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch must be a list of operations")
    result: Any = copy.deepcopy(document)
    for operation in operations:
        if not isinstance(operation, dict) or not isinstance(operation.get("path"), str):
            raise bad_request(f"a JSON patch operation needs op and path: {operation!r}")
        result = _operate(result, operation)
    if not isinstance(result, dict):
        raise _unprocessable("the patch does not leave an object")
    return result


def _operate(document: Any, operation: JsonObject) -> Any:
    path = _pointer(operation["path"])
    match operation.get("op"):
        case "add":
            return _add(document, path, operation.get("value"))
        case "remove":
            return _remove(document, path)
        case "replace":
            _value_at(document, path)
            return _add(_remove(document, path), path, operation.get("value"))
        case "test":
            if _value_at(document, path) != operation.get("value"):
                raise _unprocessable(f"testing path {operation['path']} failed")
            return document
        case "move" | "copy" as name:
            source = _pointer(str(operation.get("from")))
            value = copy.deepcopy(_value_at(document, source))
            if name == "move":
                document = _remove(document, source)
            return _add(document, path, value)
        case other:
            raise bad_request(f"unexpected JSON patch operation {other!r}")


def _pointer(text: str) -> list[str]:
    if text == "":
        return []
    if not text.startswith("/"):
        raise bad_request(f"{text!r} is no JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _value_at(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        else:
            raise _unprocessable(f"no value at path /{'/'.join(path)}")
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _value_at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list) and last == "-":
        parent.append(value)
    elif isinstance(parent, list) and last.isdigit() and int(last) <= len(parent):
        parent.insert(int(last), value)
    else:
        raise _unprocessable(f"nothing can be added at path /{'/'.join(path)}")
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    _value_at(document, path)
    parent, last = _value_at(document, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return document


def _unprocessable(why: str) -> ApiProblem:
    message = f"the server rejected our request due to an error in our request: {why}"
    return ApiProblem(422, "Invalid", message)
