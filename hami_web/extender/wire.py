"""Codec of kube-scheduler's extender calls (``kubernetes/kube-scheduler`` extender/v1).

Those Go structs have no JSON tags, so keys are capitalized field names, and Go accepts any case
when it reads; so do we. Answers equal Go's byte for byte: every key, in declaration order, maps
sorted, ``null`` for what is absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from hami_web.cluster.views import PodView
from hami_web.core import wire


class MalformedBody(Exception):
    """The request is no JSON of the expected shape; answered with 400."""


_Arguments = TypeVar("_Arguments", bound=Struct)


class _NodeItems(Struct):
    items: list[Raw] | None = None


class _FilterArguments(Struct, rename={"pod": "Pod", "nodes": "Nodes", "names": "NodeNames"}):
    pod: PodView | None = None
    nodes: _NodeItems | None = None
    names: tuple[str, ...] | None = None

    def is_complete(self) -> bool:
        return self.pod is not None and (self.names is not None or self.nodes is not None)


class _BindArguments(
    Struct,
    rename={"name": "PodName", "namespace": "PodNamespace", "uid": "PodUID", "node": "Node"},
):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    node: str = ""

    def is_complete(self) -> bool:
        return bool(self.name and self.namespace and self.uid and self.node)


class _Named(Struct):
    name: str = ""


class _NodeHead(Struct):
    metadata: _Named


class FilterCall(Struct, frozen=True):
    """A decoded ``/filter``: the Pod and the names of the nodes that are left.

    ``full_nodes`` holds the Node objects as they came, by name, when the scheduler sent them
    (``nodeCacheCapable: false``) and wants them back; None when it sent names.
    """

    pod: PodView
    names: tuple[str, ...]
    full_nodes: Mapping[str, Raw] | None = None


@dataclass(frozen=True, slots=True)
class BindCall:
    """A decoded ``/bind``; every field is set."""

    namespace: str
    name: str
    uid: str
    node: str


class IncompleteCall(Exception):
    """JSON of the right shape that lacks something; answered in the ``Error`` field."""


def decode_filter(body: bytes) -> FilterCall:
    """Read ExtenderArgs. Raises MalformedBody or IncompleteCall, naming the field."""
    arguments = _decode(body, _FilterArguments, _FilterArguments.is_complete)
    pod = arguments.pod
    if pod is None:
        raise IncompleteCall("Pod: missing; allowed: the Pod to schedule")
    if not pod.uid or not pod.metadata.name:
        raise IncompleteCall("Pod.metadata: name and uid must be set")
    if arguments.names is not None:
        return FilterCall(pod, arguments.names)
    if arguments.nodes is None:
        raise IncompleteCall("Nodes, NodeNames: both missing; allowed: one of them")
    full = {_node_name(item): item for item in arguments.nodes.items or ()}
    return FilterCall(pod, tuple(full), full)


def decode_bind(body: bytes) -> BindCall:
    """Read ExtenderBindingArgs. Raises MalformedBody or IncompleteCall, naming the fields."""
    arguments = _decode(body, _BindArguments, _BindArguments.is_complete)
    values = {
        "PodName": arguments.name,
        "PodNamespace": arguments.namespace,
        "PodUID": arguments.uid,
        "Node": arguments.node,
    }
    missing = [field for field, value in values.items() if not value]
    if missing:
        raise IncompleteCall(f"{', '.join(missing)}: missing; allowed: a non-empty string")
    return BindCall(arguments.namespace, arguments.name, arguments.uid, arguments.node)


def encode_fit(call: FilterCall, names: Sequence[str]) -> bytes:
    """Answer the nodes that fit, in the form of the request."""
    if call.full_nodes is None:
        return _filter_result(names=wire.encode(list(names)))
    items = b",".join(bytes(call.full_nodes[name]) for name in names)
    return _filter_result(nodes=f'{{"metadata":{{}},"items":[{items.decode()}]}}')


def encode_refusal(failed: Mapping[str, str], unresolvable: Mapping[str, str]) -> bytes:
    """Answer that no node fits, with a text per node."""
    return _filter_result(failed=_go_map(failed), unresolvable=_go_map(unresolvable))


def encode_filter_error(text: str) -> bytes:
    """Answer that the question could not be answered."""
    return _filter_result(error=text)


def encode_bind_result(error: str = "") -> bytes:
    """ExtenderBindingResult; an empty error is success."""
    return wire.encode({"Error": error}).encode()


def _filter_result(
    *,
    nodes: str = "null",
    names: str = "null",
    failed: str = "null",
    unresolvable: str = "null",
    error: str = "",
) -> bytes:
    return (
        f'{{"Nodes":{nodes},"NodeNames":{names},"FailedNodes":{failed},'
        f'"FailedAndUnresolvableNodes":{unresolvable},"Error":{wire.encode(error)}}}'
    ).encode()


def _go_map(values: Mapping[str, str]) -> str:
    return wire.encode(dict(sorted(values.items()))) if values else "null"


# How Go begins a Node: with its name. That spares decoding megabytes of images to find it.
_NAME_FIRST = re.compile(rb'\{"metadata":\{"name":"([a-z0-9.-]+)"')


def _node_name(item: Raw) -> str:
    head = _NAME_FIRST.match(memoryview(item))
    if head is not None:
        return head[1].decode()
    try:
        name = msgspec.json.decode(item, type=_NodeHead).metadata.name
    except msgspec.MsgspecError as error:
        raise MalformedBody(f"Nodes.items: {error}") from error
    if not name:
        raise IncompleteCall("Nodes.items: metadata.name missing; allowed: a node's name")
    return name


def _decode(
    body: bytes, kind: type[_Arguments], is_complete: Callable[[_Arguments], bool]
) -> _Arguments:
    """Decode by exact keys, as kube-scheduler writes them; if some lack, by keys in any case."""
    try:
        value = msgspec.json.decode(body, type=kind)
        if not is_complete(value):
            value = msgspec.json.decode(_with_known_keys(body, kind), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedBody(f"the body is no valid JSON for this call: {error}") from error
    return value


def _with_known_keys(body: bytes, kind: type[Struct]) -> bytes:
    wanted = {name.lower(): name for name in kind.__struct_encode_fields__}
    found = msgspec.json.decode(body, type=dict[str, Raw])
    return msgspec.json.encode({wanted.get(k.lower(), k): raw for k, raw in found.items()})
