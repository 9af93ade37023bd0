"""One API request, taken apart: which verb on which resource by whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from hami_web.simulator import problems
from hami_web.simulator.documents import JsonObject, decode
from hami_web.simulator.identity import ANYONE, User
from hami_web.simulator.resources import EVENTS, NAMESPACES, NEW_EVENTS, Resource, served

_NAMED_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


@dataclass(frozen=True, slots=True)
class Address:
    """What a path names. ``name`` is empty for a collection."""

    resource: Resource
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def storage(self) -> Resource:
        """The resource under which these objects are kept."""
        return EVENTS if self.resource is NEW_EVENTS else self.resource

    @property
    def full_resource(self) -> str:
        """``pods`` or ``pods/binding``."""
        plural = self.resource.plural
        return f"{plural}/{self.subresource}" if self.subresource else plural


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to one address."""

    address: Address
    verb: str
    params: dict[str, str]
    content_type: str = ""
    body: bytes = b""
    user: User = field(default=ANYONE)

    def document(self) -> Any:
        """The body as JSON; raises 400 where it is none."""
        try:
            return decode(self.body)
        except msgspec.DecodeError as error:
            raise problems.bad_request(f"the body is no JSON: {error}") from error

    def object(self) -> JsonObject:
        """The body as a JSON object of the addressed kind; raises 400 or 415."""
        if self.content_type not in ("", "application/json"):
            raise problems.unsupported_media_type(self.content_type, "application/json")
        document = self.document()
        if not isinstance(document, dict):
            raise problems.bad_request("the body must be a JSON object")
        return document

    def options(self) -> JsonObject:
        """The optional body of a deletion."""
        return self.object() if self.body else {}

    def number(self, name: str) -> int | None:
        """A whole-number parameter; raises 400 where it is none."""
        text = self.params.get(name, "")
        if not text:
            return None
        if not text.lstrip("-").isdigit():
            raise problems.bad_request(f"{name}: {text!r} is no whole number")
        return int(text)

    def flag(self, name: str) -> bool:
        """A true-or-false parameter, as Go's ParseBool reads it."""
        return self.params.get(name, "").lower() in ("1", "t", "true")


def parse_address(path: str) -> Address:
    """Take a path apart; raises 404 where nothing is served."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise problems.no_such_path()
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in NAMESPACES.subresources:
        namespace, rest = rest[1], rest[2:]
    resource = served(group, version, rest[0]) if rest else None
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise problems.no_such_path()
    name, subresource = (*rest[1:], "", "")[:2]
    if subresource and subresource not in resource.subresources:
        raise problems.no_such_path()
    return Address(resource, version, namespace, name, subresource)


def parse_request(method: str, target: str) -> ApiRequest:
    """Method and request target, without body and user; raises 404 or 405."""
    split = urlsplit(target)
    params = dict(parse_qsl(split.query, keep_blank_values=True))
    address = parse_address(split.path)
    verb = _verb(method, address, params)
    return ApiRequest(address, verb, params)


def _verb(method: str, address: Address, params: dict[str, str]) -> str:
    if address.subresource in ("binding", "eviction"):
        verb = "create" if method == "POST" else ""
    elif address.subresource:
        verb = "" if method == "DELETE" else _NAMED_VERBS.get(method, "")
    elif address.name:
        verb = _NAMED_VERBS.get(method, "")
    else:
        verb = _COLLECTION_VERBS.get(method, "")
    spread = address.resource.namespaced and not address.namespace
    if not verb or (spread and verb != "list"):
        raise problems.method_not_allowed()
    if verb == "list" and params.get("watch", "").lower() in ("1", "t", "true"):
        return "watch"
    return verb
