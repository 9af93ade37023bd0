"""Mutating admission webhooks, called as the API server calls them (admission.k8s.io/v1)."""

from __future__ import annotations

import base64
import http.client
import ssl
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hami_web.simulator.cel import Expression, parse
from hami_web.simulator.cel_values import CelError
from hami_web.simulator.documents import JsonObject, decode_object, encode, lookup
from hami_web.simulator.identity import User
from hami_web.simulator.patches import json_patch
from hami_web.simulator.problems import ApiProblem, forbidden
from hami_web.simulator.requests import Address
from hami_web.simulator.resources import NAMESPACES, WEBHOOKS
from hami_web.simulator.selectors import selector_object_predicate
from hami_web.simulator.store import Store


@dataclass(frozen=True, slots=True)
class Admitted:
    """One write on its way in: ``operation`` is CREATE or UPDATE, ``old`` None for CREATE."""

    operation: str
    address: Address
    user: User
    old: JsonObject | None = None


class _UnusableAnswer(ValueError):
    """A webhook answered, but not as the protocol has it."""


class Admission:
    """Calls every registered webhook whose rules match, in order of configuration and name."""

    def __init__(self, store: Store, services: dict[tuple[str, str], str]) -> None:
        self._store = store
        self._services = services

    def mutate(self, document: JsonObject, write: Admitted) -> JsonObject:
        """The object after all webhooks; raises what the client is answered when one refuses."""
        _, configurations = self._store.listing(WEBHOOKS)
        for configuration in configurations:
            for webhook in configuration.document.get("webhooks") or []:
                if self._concerns(webhook, document, write):
                    document = self._call(webhook, document, write)
        return document

    def _concerns(self, webhook: JsonObject, document: JsonObject, write: Admitted) -> bool:
        if not any(rule_matches(rule, write) for rule in webhook.get("rules") or []):
            return False
        if not selector_object_predicate(webhook.get("objectSelector") or {})(document):
            return False
        namespace = write.address.namespace
        selector = webhook.get("namespaceSelector") or {}
        if namespace and selector:
            stored = self._store.get(NAMESPACES, ("", namespace))
            if not selector_object_predicate(selector)(stored.document):
                return False
        return _conditions_hold(webhook, document, write)

    def _call(self, webhook: JsonObject, document: JsonObject, write: Admitted) -> JsonObject:
        name = str(webhook.get("name"))
        review = review_of(document, write)
        try:
            answer = self._post(webhook, review)
            response = _checked(answer, review["request"]["uid"])
        except (OSError, http.client.HTTPException, ValueError) as error:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return document
            message = f'Internal error occurred: failed calling webhook "{name}": {error}'
            raise ApiProblem(500, "InternalError", message) from error
        if not response["allowed"]:
            raise _refusal(name, response.get("status") or {})
        patch = response.get("patch")
        return json_patch(document, _decoded_patch(patch)) if patch else document

    def _post(self, webhook: JsonObject, review: JsonObject) -> JsonObject:
        client = webhook.get("clientConfig") or {}
        url = urlsplit(self._url(client))
        timeout = float(webhook.get("timeoutSeconds", 10))
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            bundle = base64.b64decode(client.get("caBundle") or "").decode()
            context = ssl.create_default_context(cadata=bundle or None)
            connection = http.client.HTTPSConnection(url.netloc, timeout=timeout, context=context)
        else:
            connection = http.client.HTTPConnection(url.netloc, timeout=timeout)
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
            target = f"{url.path or '/'}?timeout={int(timeout)}s"
            connection.request("POST", target, encode(review), headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(f"an HTTP status of {response.status}: {body[:256]!r}")
        return decode_object(body)

    def _url(self, client: JsonObject) -> str:
        if client.get("url"):
            return str(client["url"])
        service = client.get("service") or {}
        key = (str(service.get("namespace")), str(service.get("name")))
        if key not in self._services:
            raise ValueError(f'service "{key[1]}" not found in namespace {key[0]}')
        return self._services[key] + str(service.get("path") or "/")


@lru_cache(maxsize=256)
def _parsed(source: str) -> Expression:
    return parse(source)


def _conditions_hold(webhook: JsonObject, document: JsonObject, write: Admitted) -> bool:
    """Whether all ``matchConditions`` hold; one that fails to evaluate follows the policy."""
    conditions = webhook.get("matchConditions") or []
    if not conditions:
        return True
    request = review_of(document, write)["request"]
    scope = {"object": document, "oldObject": write.old, "request": request}
    try:
        return all(_parsed(item["expression"]).truth(scope) for item in conditions)
    except CelError as error:
        if webhook.get("failurePolicy", "Fail") == "Ignore":
            return False
        address = write.address
        raise forbidden(address.resource, address.name, f"match conditions: {error}") from error


def rule_matches(rule: JsonObject, write: Admitted) -> bool:
    """Whether a rule of a webhook or a policy is about this write."""
    address = write.address
    wanted = (
        (rule.get("operations"), write.operation),
        (rule.get("apiGroups"), address.resource.group),
        (rule.get("apiVersions"), address.version),
    )
    if not all("*" in (values or []) or found in (values or []) for values, found in wanted):
        return False
    plural, subresource = address.resource.plural, address.subresource
    names = {address.full_resource, "*/*"}
    names |= {f"{plural}/*", f"*/{subresource}"} if subresource else {f"{plural}/*", "*"}
    scope = rule.get("scope", "*")
    scoped = "Namespaced" if address.resource.namespaced else "Cluster"
    return scope in ("*", scoped) and any(entry in names for entry in rule.get("resources") or [])


def review_of(document: JsonObject, write: Admitted) -> JsonObject:
    """The ``AdmissionReview`` of a write."""
    address = write.address
    resource = address.resource
    kind = {"group": resource.group, "version": address.version, "kind": resource.kind}
    plural = {"group": resource.group, "version": address.version, "resource": resource.plural}
    options = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions"}[write.operation]
    request: dict[str, Any] = {
        "uid": str(uuid.uuid4()),
        "kind": kind,
        "resource": plural,
        "requestKind": kind,
        "requestResource": plural,
        "namespace": address.namespace,
        "operation": write.operation,
        "userInfo": write.user.info(),
        "object": document,
        "oldObject": write.old,
        "dryRun": False,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
    }
    name = address.name or lookup(document, "metadata.name")
    if name:
        request["name"] = name
    if address.subresource:
        request["subResource"] = request["requestSubResource"] = address.subresource
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _checked(answer: JsonObject, uid: str) -> JsonObject:
    """The response of a review that follows the protocol."""
    if answer.get("apiVersion") != "admission.k8s.io/v1" or answer.get("kind") != "AdmissionReview":
        found = f"{answer.get('apiVersion')}, Kind={answer.get('kind')}"
        raise _UnusableAnswer(
            f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {found}"
        )
    response = answer.get("response")
    if not isinstance(response, dict):
        raise _UnusableAnswer("webhook response was absent")
    if response.get("uid") != uid:
        raise _UnusableAnswer(f"expected response.uid={uid!r}, got {response.get('uid')!r}")
    if not isinstance(response.get("allowed"), bool):
        raise _UnusableAnswer("response.allowed must be true or false")
    if bool(response.get("patch")) != (response.get("patchType") == "JSONPatch"):
        raise _UnusableAnswer("response.patch and response.patchType=JSONPatch go together")
    return response


def _decoded_patch(text: str) -> Any:
    try:
        return msgspec.json.decode(base64.b64decode(text))
    except ValueError as error:
        message = f"Internal error occurred: the webhook's patch is no JSON: {error}"
        raise ApiProblem(500, "InternalError", message) from error


def _refusal(name: str, status: JsonObject) -> ApiProblem:
    denied = f'admission webhook "{name}" denied the request'
    text = status.get("message") or status.get("reason")
    message = f"{denied}: {text}" if text else f"{denied} without explanation"
    code = max(400, int(status.get("code") or 0))
    return ApiProblem(code, str(status.get("reason") or ""), message)
