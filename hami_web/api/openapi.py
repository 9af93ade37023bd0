"""What the schema tells of every operation alike: problems, names in addresses, CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hami_web.api.codes import KINDS, Kind
from hami_web.api.problems import CONTENT_TYPE

Schema = dict[str, Any]
_ALWAYS: Final = (400, 401, 403, 404, 405, 406, 429, 503)
_WITH_BODY: Final = (413, 415)
_OF_VERBS: Final = (409, 412, 502)
_NAMES: Final = {
    "uuid": ("a GPU's UUID", "GPU-5d2f0a1b-3c4d-4e5f-8a9b-0c1d2e3f4a5b"),
    "name": ("a node's name", "gpu-node-1"),
    "namespace": ("a namespace", "team-a"),
    "pod": ("a Pod's name", "train-0"),
    "run": ("the id of a migration run", 1),
    "id": ("the id that the list tells", 1),
    "pk": ("the id that the list tells", 1),
}
PROBLEM: Final[Schema] = {
    "type": "object",
    "description": "RFC 9457. `code` is stable across releases and languages.",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "enum": sorted(kind.code for kind in KINDS)},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "value", "allowed"],
                "properties": {name: {"type": "string"} for name in ("field", "value", "allowed")},
            },
        },
        "request_id": {"type": "string", "description": "of the log and of the audit log"},
        "current": {"type": "object", "description": "the object as it is"},
        "etag": {"type": "string", "description": "of the current object"},
        "cluster_code": {"type": "string", "description": "how the API server failed"},
    },
}


def document(result: Schema, **_more: object) -> Schema:
    """A hook of drf-spectacular: complete a generated schema."""
    components = result["components"]
    for shape in components["schemas"].values():
        for field in shape.get("properties", {}).values():
            if {} in field.get("oneOf", ()):  # anything, null as well
                del field["oneOf"]
    components["schemas"]["Problem"] = PROBLEM
    statuses = sorted({kind.status for kind in KINDS})
    components["responses"] = {f"Problem{status}": _response(status) for status in statuses}
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            for status in _statuses(path, method):
                answer = {"$ref": f"#/components/responses/Problem{status}"}
                operation["responses"].setdefault(str(status), answer)
            _describe(operation)
            if any(item["name"] == "fields" for item in operation.get("parameters", ())):
                _may_lack_fields(operation, components["schemas"])
    return result


def _may_lack_fields(operation: Schema, shapes: Schema) -> None:
    """Whoever asks for some fields gets no others, so that none is sure to be in a row."""
    content = operation["responses"]["200"].get("content", {})
    shape = _shape_of(content["application/json"]["schema"], shapes)
    rows = shape.get("properties", {}).get("results")
    row = shape if rows is None else _shape_of(rows["items"], shapes)
    row.pop("required", None)


def _shape_of(schema: Schema, shapes: Schema) -> Schema:
    """The component that a schema refers to."""
    found: Schema = shapes[schema["$ref"].rpartition("/")[2]]
    return found


def _statuses(path: str, method: str) -> Iterator[int]:
    yield from _ALWAYS
    if method == "post":
        yield from _WITH_BODY
        if "{" in path or path.endswith("/start"):  # verbs
            yield from _OF_VERBS


def _response(status: int) -> Schema:
    kinds = [kind for kind in KINDS if kind.status == status]
    examples = {kind.code: {"value": _example(kind)} for kind in kinds}
    content = {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": examples}
    titles = "; ".join(str(kind.title) for kind in kinds)
    return {"description": titles, "content": {CONTENT_TYPE: content}}


def _example(kind: Kind) -> Schema:
    return {
        "type": kind.type,
        "title": str(kind.title),
        "status": kind.status,
        "code": kind.code,
        "detail": "a sentence for people",
    }


def _describe(operation: Schema) -> None:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            name = parameter["name"]
            is_number = parameter["schema"].get("type") == "integer"
            description, example = _NAMES.get(name, (f"which {name}", 1 if is_number else "a"))
            parameter.setdefault("description", description)
            parameter.setdefault("example", example)
        elif parameter["name"] == "format":
            parameter.setdefault("description", "of the answer; problems are always JSON")
            parameter.setdefault("example", "csv")
    for answer in operation["responses"].values():
        content = answer.get("content", {})
        if "text/csv" in content:
            content["text/csv"] = {"schema": {"type": "string"}}
