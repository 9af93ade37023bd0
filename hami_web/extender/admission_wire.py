"""Codec of AdmissionReview, ``admission.k8s.io/v1`` and ``v1beta1``: equal for what we use."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from hami_web.cluster.views import PodView
from hami_web.core import wire as go_json
from hami_web.extender.wire import MalformedBody
from hami_web.scheduling.verdict import AdmissionCall, PatchOperation, Verdict

API_VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
WARNING_MAX = 250
"""Bytes; the API server cuts the warnings of all webhooks together at 4 KiB."""


class _GroupKind(Struct):
    group: str = ""
    kind: str = ""


class _GeneratedName(Struct, rename="camel"):
    generate_name: str = ""


class _Head(Struct):
    metadata: _GeneratedName = msgspec.field(default_factory=_GeneratedName)


class _UserInfo(Struct):
    username: str = ""


class _Request(Struct, rename="camel"):
    uid: str
    kind: _GroupKind
    operation: str
    namespace: str = ""
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


@dataclass(frozen=True, slots=True)
class Review:
    """A decoded review and what its answer must repeat."""

    api_version: str
    uid: str
    call: AdmissionCall


def decode_review(body: bytes) -> Review:
    """Read a review of a Pod. Raises MalformedBody naming what is wrong."""
    try:
        review = msgspec.json.decode(body, type=_Review)
        if review.kind != "AdmissionReview" or review.api_version not in API_VERSIONS:
            raise MalformedBody(
                f"apiVersion, kind: {review.api_version!r}, {review.kind!r} is not allowed; "
                f"allowed: AdmissionReview of {', '.join(API_VERSIONS)}"
            )
        request = review.request
        return Review(review.api_version, request.uid, _call(request))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedBody(f"the body is no AdmissionReview: {error}") from error


def encode_review(review: Review, verdict: Verdict) -> bytes:
    """Write the answer: allowed, with patch and warnings if any; or refused with a message."""
    response: dict[str, object] = {"uid": review.uid, "allowed": verdict.refusal is None}
    if verdict.refusal is not None:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": verdict.refusal}
    if verdict.patch:
        patch = go_json.encode([_operation(item) for item in verdict.patch]).encode()
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(patch).decode()
    if verdict.warnings:
        response["warnings"] = [_shortened(f"hami: {text}") for text in verdict.warnings]
    answer = {"kind": "AdmissionReview", "apiVersion": review.api_version, "response": response}
    return go_json.encode(answer).encode()


def _call(request: _Request) -> AdmissionCall:
    """Other kinds than Pods never reach us by our webhook's rules; they pass as empty Pods."""
    if (request.kind.group, request.kind.kind) != ("", "Pod") or bytes(request.object) == b"null":
        raise MalformedBody(
            f"request.kind: {request.kind.group}/{request.kind.kind} is not allowed; "
            "allowed: a core Pod with its object"
        )
    pod = msgspec.json.decode(request.object, type=PodView)
    generated = msgspec.json.decode(request.object, type=_Head).metadata.generate_name
    name = pod.metadata.name or f"{generated}…"
    old = msgspec.json.decode(request.old_object, type=PodView | None)
    return AdmissionCall(
        request.operation, pod, f"{request.namespace}/{name}", old, request.user_info.username
    )


def _operation(item: PatchOperation) -> dict[str, object]:
    if item.op == "remove":
        return {"op": item.op, "path": item.path}
    return {"op": item.op, "path": item.path, "value": item.value}


def _shortened(text: str) -> str:
    """At most WARNING_MAX bytes, cut between characters."""
    data = text.encode()
    if len(data) <= WARNING_MAX:
        return text
    return data[: WARNING_MAX - 3].decode(errors="ignore") + "…"
