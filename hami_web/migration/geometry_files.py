"""Finds the configurations in what people have: a file, a ConfigMap, or a list of ConfigMaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from hami_web.core.errors import InvalidPolicy
from hami_web.core.geometries import holds_geometries


@dataclass(frozen=True, slots=True)
class FoundConfiguration:
    """A configuration of the old kind, and where in the text it was."""

    where: str
    document: object


def find_configurations(text: str) -> list[FoundConfiguration]:
    """All configurations with geometries. Raises InvalidPolicy for text that has none."""
    try:
        documents = [item for item in yaml.safe_load_all(text) if item is not None]
    except yaml.YAMLError as error:
        raise InvalidPolicy("configuration", str(error), "YAML or JSON") from error
    found = [item for document in documents for item in _inside(document, "")]
    if not found:
        allowed = "a mapping with nvidia.knownMigGeometries or mig-configs, or a ConfigMap with one"
        shown = sorted(documents[0]) if documents and isinstance(documents[0], dict) else documents
        raise InvalidPolicy("configuration", shown, allowed)
    return found


def _inside(document: object, where: str) -> Iterator[FoundConfiguration]:
    if holds_geometries(document):
        yield FoundConfiguration(where or "configuration", document)
    elif isinstance(document, dict) and isinstance(document.get("data"), dict):
        name = document.get("metadata", {}).get("name", "ConfigMap")
        for key, value in document["data"].items():
            yield from _embedded(value, f"{where}{name}/{key}")
    elif isinstance(document, dict) and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _inside(item, where)


def _embedded(value: object, where: str) -> Iterator[FoundConfiguration]:
    """A value of a ConfigMap is a text; one that is no YAML is somebody else's."""
    try:
        inner = yaml.safe_load(str(value))
    except yaml.YAMLError:
        return
    if holds_geometries(inner):
        yield FoundConfiguration(where, inner)
