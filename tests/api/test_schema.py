"""The OpenAPI schema: valid, complete, and the one that was agreed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from drf_spectacular.validation import validate_schema

from hami_web.api.codes import KINDS

AGREED = Path(__file__).parents[1] / "golden/api/operations.txt"
Schema = dict[str, Any]


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Client(headers={"host": "localhost"}).get("/api/schema/?format=json").json()


def operations(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, methods in sorted(schema["paths"].items()):
        for method, operation in sorted(methods.items()):
            yield path, method, operation


def summary(schema: Schema) -> str:
    """What clients depend on: addresses, parameters, statuses, and the fields of every shape."""
    lines = []
    for path, method, operation in operations(schema):
        names = " ".join(sorted(item["name"] for item in operation.get("parameters", ())))
        statuses = " ".join(sorted(operation["responses"]))
        lines += [f"{method.upper()} {path}", f"  parameters: {names}", f"  answers: {statuses}"]
    for name, shape in sorted(schema["components"]["schemas"].items()):
        fields = " ".join(shape.get("properties", ())) or " ".join(map(str, shape.get("enum", ())))
        lines.append(f"{name}: {fields}")
    return "\n".join(lines) + "\n"


def test_it_is_valid_openapi(schema: Schema) -> None:
    validate_schema(schema)
    assert schema["openapi"] == "3.1.0"


def test_it_is_the_one_that_was_agreed(schema: Schema) -> None:
    """A difference is a change that clients see: look at it, then copy ``summary`` to the file."""
    assert summary(schema) == AGREED.read_text(encoding="utf-8")


def test_every_operation_and_parameter_is_described_with_an_example(schema: Schema) -> None:
    for path, method, operation in operations(schema):
        assert operation.get("description"), (path, method)
        for item in operation.get("parameters", ()):
            assert item.get("description"), (path, item)
            assert "example" in item or item.get("examples"), (path, item)
        body = operation.get("requestBody", {}).get("content", {})
        assert all(media.get("examples") for media in body.values()), path


def test_every_problem_is_described_with_an_example(schema: Schema) -> None:
    described = {
        code: example["value"]["status"]
        for answer in schema["components"]["responses"].values()
        for code, example in answer["content"]["application/problem+json"]["examples"].items()
    }
    assert described == {kind.code: kind.status for kind in KINDS}


def test_a_row_of_some_fields_is_one_that_the_schema_allows(schema: Schema) -> None:
    shapes = schema["components"]["schemas"]
    assert "required" not in shapes["Handover"]
    reserved = schema["paths"]["/api/v1/reservations/{id}"]["get"]["responses"]["200"]
    ref = reserved["content"]["application/json"]["schema"]["$ref"]
    assert "required" not in shapes[ref.rpartition("/")[2]]
    assert "required" in shapes["Problem"]
