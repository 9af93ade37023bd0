"""TokenReview and SubjectAccessReview: the API server says who it is and what they may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from hami_web.cluster.errors import MalformedAnswer, OutcomeUnclear
from hami_web.cluster.transport import Request, Transport

TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TIMEOUT_S: Final = 5.0
_View = TypeVar("_View")


class ReviewedUser(msgspec.Struct, frozen=True):
    """A user as the API server authenticated them."""

    username: str = ""
    uid: str = ""
    groups: list[str] | None = None


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: ReviewedUser = ReviewedUser()
    error: str = ""


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


def review_token(transport: Transport, token: str) -> ReviewedUser | None:
    """The user of a bearer token; None for one that the API server does not accept.

    Raises ClusterError where it does not answer.
    """
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token},
    }
    status = _ask(transport, TOKENS, body, _TokenReview).status
    return status.user if status.authenticated and status.user.username else None


def may_list_pods(transport: Transport, user: ReviewedUser, namespace: str) -> bool:
    """Whether a user may list the Pods of a namespace; the empty one stands for all namespaces.

    Raises ClusterError where the API server does not answer.
    """
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user.username,
            "uid": user.uid,
            "groups": list(user.groups or ()),
            "resourceAttributes": {
                "namespace": namespace,
                "verb": "list",
                "group": "",
                "version": "v1",
                "resource": "pods",
            },
        },
    }
    status = _ask(transport, ACCESS, body, _AccessReview).status
    return status.allowed and not status.denied


class Asked(msgspec.Struct, frozen=True):
    """One right; ``group`` is empty for the core API, ``namespace`` for all namespaces."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""
    namespace: str = ""

    @property
    def shown(self) -> str:
        """``pods/binding``."""
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{name}/{self.subresource}" if self.subresource else name


def may(transport: Transport, username: str, asked: Asked) -> bool:
    """Whether a user has a right, by its name alone.

    Raises ClusterError where the API server does not answer.
    """
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": username,
            "groups": _groups_of(username),
            "resourceAttributes": {
                "namespace": asked.namespace,
                "verb": asked.verb,
                "group": asked.group,
                "resource": asked.resource,
                "subresource": asked.subresource,
            },
        },
    }
    status = _ask(transport, ACCESS, body, _AccessReview).status
    return status.allowed and not status.denied


def _groups_of(username: str) -> list[str]:
    """A ServiceAccount is in the groups that the API server gives it."""
    groups = ["system:authenticated"]
    if username.startswith("system:serviceaccount:"):
        namespace = username.split(":")[2]
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return groups


def _ask(transport: Transport, path: str, body: Mapping[str, object], view: type[_View]) -> _View:
    """A review changes nothing, so one whose connection broke is asked again, once."""
    request = Request("POST", path, body=body, read_timeout_s=TIMEOUT_S)
    try:
        answer = transport.send(request)
    except OutcomeUnclear:
        answer = transport.send(request)
    try:
        return msgspec.json.decode(answer, type=view)
    except msgspec.MsgspecError as error:
        raise MalformedAnswer(f"POST {path}: {error}") from error
