"""The two shapes of an Event: core v1, as it is stored, and events.k8s.io/v1."""

from __future__ import annotations

from hami_web.simulator import problems
from hami_web.simulator.documents import JsonObject, metadata

_CORE_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_NEW_TO_CORE = {new: core for core, new in _CORE_TO_NEW.items()}
_REQUIRED = ("eventTime", "reportingController", "reportingInstance", "action", "reason")


def to_core(document: JsonObject) -> JsonObject:
    """An events.k8s.io/v1 Event as it is stored."""
    renamed = {_NEW_TO_CORE.get(key, key): value for key, value in document.items()}
    return renamed | {"apiVersion": "v1", "kind": "Event"}


def to_new(document: JsonObject) -> JsonObject:
    """A stored Event as events.k8s.io/v1 shows it."""
    renamed = {_CORE_TO_NEW.get(key, key): value for key, value in document.items()}
    return renamed | {"apiVersion": "events.k8s.io/v1", "kind": "Event"}


def check_new(document: JsonObject) -> None:
    """Refuse an events.k8s.io/v1 Event that breaks that version's rules: 422."""
    causes = [(field, "Required value") for field in _REQUIRED if not document.get(field)]
    if len(str(document.get("note") or "")) > 1024:
        causes.append(("note", "Invalid value: can have at most 1024 bytes"))
    if document.get("type") not in ("Normal", "Warning"):
        found = document.get("type") or ""
        causes.append(("type", f'Invalid value: "{found}": must be one of Normal, Warning'))
    if causes:
        raise problems.invalid("Event", str(metadata(document).get("name", "")), causes)


def check_namespace(document: JsonObject) -> None:
    """Refuse a stored-form Event in another namespace than the object it is about: 422."""
    about = str((document.get("involvedObject") or {}).get("namespace") or "")
    own = str(metadata(document).get("namespace") or "")
    fits = own in ("default", "kube-system") if not about else about == own
    if document.get("eventTime"):  # the new kind may be kept elsewhere than what it is about
        fits = fits or bool(about)
    if not fits:
        text = f'Invalid value: "{about}": does not match event.namespace'
        name = str(metadata(document).get("name", ""))
        raise problems.invalid("Event", name, [("involvedObject.namespace", text)])
