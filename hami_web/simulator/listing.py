"""Lists: selection, pages with tokens that expire, and the resource version they are from."""

from __future__ import annotations

import base64
import itertools
import threading
from dataclasses import dataclass

from hami_web.simulator import problems
from hami_web.simulator.documents import decode
from hami_web.simulator.requests import Address, ApiRequest
from hami_web.simulator.selectors import Predicate, everything, field_predicate, label_predicate
from hami_web.simulator.store import Store, StoredObject
from hami_web.simulator.watching import encoded_as

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is left of a list that is given out in pages."""

    version: int
    objects: tuple[StoredObject, ...]


class Lists:
    """Answers lists. A page continues the list at the version of its first page."""

    def __init__(self, store: Store, kept_pages: int = 1000) -> None:
        self._store = store
        self._kept = kept_pages
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._pages: dict[str, _Rest] = {}

    def page(self, request: ApiRequest) -> bytes:
        """The encoded list; raises 400 for parameters and 410 for an expired token."""
        token = request.params.get("continue", "")
        rest = self._continued(request, token) if token else self._first(request)
        limit = request.number("limit") or 0
        page = rest.objects[:limit] if limit > 0 else rest.objects
        left = rest.objects[len(page) :]
        meta = f'"resourceVersion":"{rest.version}"'
        if left:
            meta += f',"continue":"{self._keep(_Rest(rest.version, left))}"'
            if not has_selector(request):
                meta += f',"remainingItemCount":{len(left)}'
        return _encoded_list(request.address, meta, page)

    def expire_tokens(self) -> None:
        """Every token given out so far is answered with 410 from now on."""
        with self._lock:
            self._pages.clear()

    def _first(self, request: ApiRequest) -> _Rest:
        wanted = check_version(request)
        if request.params.get("resourceVersionMatch") == "Exact":
            raise problems.bad_request("resourceVersionMatch Exact is not simulated")
        version, objects = self._store.listing(request.address.storage, request.address.namespace)
        if wanted > version:
            message = f"Too large resource version: {wanted}, current: {version}"
            raise problems.ApiProblem(504, "Timeout", message, retry_after=1)
        matches = selection(request)
        chosen = [stored for stored in objects if matches(stored.document)]
        return _Rest(version, tuple(chosen))

    def _continued(self, request: ApiRequest, token: str) -> _Rest:
        if request.params.get("resourceVersion", "0") not in ("", "0"):
            raise problems.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        try:
            decode(base64.urlsafe_b64decode(token))
        except ValueError as error:
            raise problems.bad_request(f"continue key is not valid: {error}") from error
        with self._lock:
            rest = self._pages.get(token)
        if rest is None:
            raise problems.expired(_TOO_OLD)
        return rest

    def _keep(self, rest: _Rest) -> str:
        with self._lock:
            text = f'{{"v":"meta.k8s.io/v1","rv":{rest.version},"n":{next(self._numbers)}}}'
            token = base64.urlsafe_b64encode(text.encode()).decode()
            self._pages[token] = rest
            while len(self._pages) > self._kept:
                del self._pages[next(iter(self._pages))]
            return token


def check_version(request: ApiRequest) -> int:
    """The resourceVersion parameter; 0 when absent. Raises 500, as the real server, for others."""
    text = request.params.get("resourceVersion", "")
    if text and not text.isdigit():
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        message = f'resourceVersion: Invalid value: "{text}": {why}'
        raise problems.ApiProblem(500, "", message)
    return int(text or 0)


def has_selector(request: ApiRequest) -> bool:
    """The request selects by label or field."""
    return bool(request.params.get("labelSelector") or request.params.get("fieldSelector"))


def selection(request: ApiRequest) -> Predicate:
    """Both selectors of the request; raises 400 where one is malformed."""
    if not has_selector(request):
        return everything
    labels = label_predicate(request.params.get("labelSelector", ""))
    fields = field_predicate(request.params.get("fieldSelector", ""), request.address.storage)
    return lambda document: labels(document) and fields(document)


def _encoded_list(address: Address, meta: str, objects: tuple[StoredObject, ...]) -> bytes:
    resource = address.resource
    head = (
        f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version(address.version)}",'
        f'"metadata":{{{meta}}},"items":['
    )
    items = b",".join(encoded_as(address, stored) for stored in objects)
    return head.encode() + items + b"]}"
