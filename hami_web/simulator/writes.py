"""What one write does to a document: its envelope, identity, preconditions and merged parts."""

from __future__ import annotations

import random
import string
import uuid

from hami_web.simulator import event_versions, problems
from hami_web.simulator.documents import JsonObject, lookup, metadata, timestamp, uid_of
from hami_web.simulator.requests import Address, ApiRequest
from hami_web.simulator.resources import NEW_EVENTS
from hami_web.simulator.store import StoredObject

# The alphabet of generated names: no vowels, no look-alikes.
_SUFFIX_LETTERS = "".join(sorted(set(string.ascii_lowercase + "2456789") - set("aeiouyl")))
_KEPT_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def check_envelope(address: Address, document: JsonObject) -> None:
    """Refuse a body of another kind, namespace or name than its address: 400."""
    resource = address.resource
    expected = (resource.api_version(address.version), resource.kind)
    found = (
        document.setdefault("apiVersion", expected[0]),
        document.setdefault("kind", expected[1]),
    )
    if found != expected:
        raise problems.bad_request(
            f"{found[1]} in version {found[0]!r} cannot be handled as a {resource.kind}: "
            f"expected {expected[1]} in {expected[0]}"
        )
    namespace = metadata(document).get("namespace")
    if namespace and namespace != address.namespace:
        raise problems.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name = metadata(document).get("name")
    if address.name and name and name != address.name:
        raise problems.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({address.name})"
        )
    if resource is NEW_EVENTS:
        event_versions.check_new(document)


def give_identity(address: Address, document: JsonObject) -> None:
    """Name, UID and creation time of a new object; raises 422 without any name."""
    meta = metadata(document)
    if not meta.get("name"):
        prefix = str(meta.get("generateName") or "")
        if not prefix:
            cause = ("metadata.name", "Required value: name or generateName is required")
            raise problems.invalid(address.resource.kind, "", [cause])
        suffix = "".join(random.choices(_SUFFIX_LETTERS, k=5))  # noqa: S311 -- a name, no secret
        meta["name"] = prefix[:58] + suffix
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = timestamp()
    meta.pop("deletionTimestamp", None)
    if address.namespace:
        meta["namespace"] = address.namespace


def to_storage(address: Address, document: JsonObject) -> JsonObject:
    """A document of the addressed version as it is stored."""
    if address.resource is NEW_EVENTS:
        return event_versions.to_core(document)
    return document | {"apiVersion": address.storage.api_version()}


def from_storage(address: Address, document: JsonObject) -> JsonObject:
    """A stored document in the addressed version."""
    if address.resource is NEW_EVENTS:
        return event_versions.to_new(document)
    return document | {"apiVersion": address.resource.api_version(address.version)}


def shown(address: Address, stored: StoredObject) -> JsonObject:
    """A stored object in the version in which it was asked for."""
    return from_storage(address, stored.document)


def check_preconditions(request: ApiRequest, old: JsonObject, new: JsonObject) -> None:
    """Refuse a write whose resourceVersion or UID is not the stored one.

    409, but 422 for a patch of the UID, which the real server takes for a change of the field.
    """
    address = request.address
    meta = metadata(new)
    version, uid = meta.get("resourceVersion"), meta.get("uid")
    if version and version != old["metadata"]["resourceVersion"]:
        raise problems.conflict(address.resource, address.name, problems.STALE)
    if uid and uid != uid_of(old) and request.verb == "patch":
        cause = ("metadata.uid", f'Invalid value: "{uid}": field is immutable')
        raise problems.invalid(address.resource.kind, address.name, [cause])
    if uid and uid != uid_of(old):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(old)}"
        raise problems.conflict(address.resource, address.name, why)


def merged(address: Address, old: JsonObject, new: JsonObject) -> JsonObject:
    """The new object with what this write may not touch taken from the old one.

    As the real strategies have it, a write of ``status`` keeps the spec but may change labels and
    annotations, and a write of the object keeps the status.
    """
    meta, old_meta = metadata(new), metadata(old)
    for field in (*_KEPT_METADATA, "name", "namespace"):
        meta.pop(field, None)
        if field in old_meta:
            meta[field] = old_meta[field]
    kept: set[str] = set()
    if address.subresource == "status":
        kept = set(old) | set(new)
        kept -= {"status", "metadata"}
    elif address.storage.has_status:
        kept = {"status"}
    for field in kept:
        new.pop(field, None)
        if field in old:
            new[field] = old[field]
    return new


def is_released(document: JsonObject) -> bool:
    """The last finalizer of an object that only waited for it is gone."""
    meta = metadata(document)
    waited = bool(meta.get("deletionTimestamp")) and not meta.get("deletionGracePeriodSeconds")
    return waited and not meta.get("finalizers")


def check_delete_preconditions(
    address: Address, current: JsonObject, preconditions: JsonObject
) -> None:
    """Refuse a deletion that is meant for another object or version: 409."""
    for field, name, fate in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        wanted, found = preconditions.get(field), lookup(current, f"metadata.{field}")
        if wanted and wanted != found:
            why = (
                f"the {name} in the precondition ({wanted}) does not match the {name} in record "
                f"({found}). The object might have been {fate}"
            )
            raise problems.conflict(address.resource, address.name, why)
