"""What the API server refuses in any object: names, labels, annotations, quantities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from hami_web.simulator import problems
from hami_web.simulator.documents import JsonObject, metadata
from hami_web.simulator.quantities import canonical_quantity, parse_quantity
from hami_web.simulator.resources import NODES, PODS, Resource

TOTAL_ANNOTATION_BYTES = 256 * 1024
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_QUALIFIED = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
Causes = list[tuple[str, str]]


def normalize_object(resource: Resource, document: JsonObject) -> None:
    """What decoding into Go's types does: 400 for wrong types, quantities in canonical text."""
    meta = metadata(document)
    for field in ("labels", "annotations"):
        _check_string_map(resource, meta, field)
    if resource is PODS:
        for path, container in _containers(document):
            for side in ("limits", "requests"):
                amounts = (container.get("resources") or {}).get(side) or {}
                _canonicalize(amounts, f"{path}.resources.{side}")
    elif resource is NODES:
        for side in ("capacity", "allocatable"):
            _canonicalize((document.get("status") or {}).get(side) or {}, f"status.{side}")


def check_object(resource: Resource, document: JsonObject) -> None:
    """Refuse a normalized object whose values no write may store: 422 with every cause."""
    meta = metadata(document)
    causes: Causes = []
    _check_name(str(meta.get("name", "")), causes)
    _check_labels(meta.get("labels") or {}, causes)
    _check_annotations(meta.get("annotations") or {}, causes)
    if resource is PODS:
        _check_pod(document, causes)
    if causes:
        raise problems.invalid(resource.kind, str(meta.get("name", "")), causes)


def _check_string_map(resource: Resource, meta: JsonObject, field: str) -> None:
    found = meta.get(field)
    if found is None:
        meta.pop(field, None)
        return
    if not isinstance(found, dict):
        raise problems.bad_request(f"{resource.kind} metadata.{field} must be an object")
    for key, value in found.items():
        if value is None:  # Go decodes null in a map of strings as the empty string
            found[key] = ""
        elif not isinstance(value, str):
            raise problems.bad_request(
                f"{resource.kind} in version v1 cannot be handled: json: cannot unmarshal "
                f"{type(value).__name__} into Go struct field "
                f"ObjectMeta.metadata.{field} of type string (key {key!r})"
            )


def _check_name(name: str, causes: Causes) -> None:
    if len(name) > 253 or not _SUBDOMAIN.match(name):
        causes.append(
            (
                "metadata.name",
                f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower '
                "case alphanumeric characters, '-' or '.', at most 253 of them",
            )
        )


def _check_labels(labels: dict[str, str], causes: Causes) -> None:
    for key, value in labels.items():
        _check_key(key, "metadata.labels", causes)
        if len(value) > 63:
            text = f'Invalid value: "{value}": must be no more than 63 characters'
            causes.append(("metadata.labels", text))
        elif value and not _QUALIFIED.match(value):
            causes.append(
                (
                    "metadata.labels",
                    f'Invalid value: "{value}": a valid label must be an empty string or consist '
                    "of alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character",
                )
            )


def _check_annotations(annotations: dict[str, str], causes: Causes) -> None:
    total = 0
    for key, value in annotations.items():
        _check_key(key.lower(), "metadata.annotations", causes)
        total += len(key.encode()) + len(value.encode())
    if total > TOTAL_ANNOTATION_BYTES:
        text = f"Too long: must have at most {TOTAL_ANNOTATION_BYTES} bytes"
        causes.append(("metadata.annotations", text))


def _check_key(key: str, field: str, causes: Causes) -> None:
    prefix, slash, name = key.rpartition("/")
    good = bool(_QUALIFIED.match(name)) and len(name) <= 63
    if slash:
        good = good and bool(_SUBDOMAIN.match(prefix)) and len(prefix) <= 253
    if not good:
        text = f'Invalid value: "{key}": must be a qualified name: [DNS subdomain/]name'
        causes.append((field, text))


def _containers(pod: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """(field path, container) of every container, init containers first; raises 400."""
    spec = pod.get("spec") or {}
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            path = f"spec.{field}[{index}]"
            if not isinstance(container, dict):
                raise problems.bad_request(f"Pod {path} must be an object")
            yield path, container


def _canonicalize(amounts: JsonObject, path: str) -> None:
    for name, value in amounts.items():
        text = canonical_quantity(value)
        if text is None:
            raise problems.bad_request(
                "quantities must match the regular expression "
                f"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': {path}[{name}]: {value!r}"
            )
        amounts[name] = text


def _check_pod(pod: JsonObject, causes: Causes) -> None:
    if not (pod.get("spec") or {}).get("containers"):
        causes.append(("spec.containers", "Required value"))
    names: set[str] = set()
    for path, container in _containers(pod):
        name = str(container.get("name", ""))
        if not _DNS_LABEL.match(name) or len(name) > 63:
            causes.append((f"{path}.name", f'Invalid value: "{name}": must be a DNS label'))
        if name in names:
            causes.append((f"{path}.name", f'Duplicate value: "{name}"'))
        names.add(name)
        if not container.get("image"):
            causes.append((f"{path}.image", "Required value"))
        _check_resources(container.get("resources") or {}, f"{path}.resources", causes)


def _check_resources(resources: JsonObject, path: str, causes: Causes) -> None:
    """Extended resources are whole numbers, and requested exactly as limited."""
    for side in ("limits", "requests"):
        for name, text in (resources.get(side) or {}).items():
            amount, field = parse_quantity(text) or Fraction(0), f"{path}.{side}[{name}]"
            if amount < 0:
                why = f'Invalid value: "{text}": must be greater than or equal to 0'
                causes.append((field, why))
            elif "/" in name and amount.denominator != 1:
                causes.append((field, f'Invalid value: "{text}": must be an integer'))
    limits = resources.get("limits") or {}
    for name, text in (resources.get("requests") or {}).items():
        if "/" not in name:
            continue
        if name not in limits:
            causes.append((f"{path}.limits", "Required value: Limit must be set for " + name))
        elif limits[name] != text:
            why = f'Invalid value: "{text}": must be equal to {name} limit of {limits[name]}'
            causes.append((f"{path}.requests", why))
