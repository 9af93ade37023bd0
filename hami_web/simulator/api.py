"""From a request to its answer: authorization, then the verb."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from hami_web.simulator import pods, problems
from hami_web.simulator.admission import Admission
from hami_web.simulator.documents import encode
from hami_web.simulator.identity import Access, Identities
from hami_web.simulator.listing import Lists, check_version, selection
from hami_web.simulator.registry import Registry
from hami_web.simulator.requests import ApiRequest
from hami_web.simulator.resources import ACCESS_REVIEWS, BINDINGS, TOKEN_REVIEWS
from hami_web.simulator.store import Store, StoredObject
from hami_web.simulator.watching import WatchOptions, WatchStream, encoded_as

AUDIT_MAX = 100_000
"""Entries kept: an endless demo must not grow without end."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request that was authenticated: who did what to which object, and the HTTP code."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    code: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP code and an encoded JSON body."""

    code: int
    body: bytes


class Api:
    """The API's behaviour without its HTTP edge.

    ``bookmark_every`` is in seconds. With ``expired_watch_is_http`` a watch from a compacted
    version is refused with HTTP 410, else it starts and sends an ERROR event: servers do either.
    """

    def __init__(self, services: dict[tuple[str, str], str], identities: Identities) -> None:
        self.store = Store()
        self.identities = identities
        self.lists = Lists(self.store)
        self.bookmark_every = 60.0
        self.expired_watch_is_http = False
        self._registry = Registry(self.store, Admission(self.store, services))
        self._audit_lock = threading.Lock()
        self._audit: deque[AuditEntry] = deque(maxlen=AUDIT_MAX)

    @property
    def audit(self) -> tuple[AuditEntry, ...]:
        """What was asked so far, in order of answers; of very many the newest."""
        with self._audit_lock:
            return tuple(self._audit)

    def record(self, request: ApiRequest, code: int) -> None:
        """Note one answered request."""
        address = request.address
        entry = AuditEntry(
            user=request.user.name,
            verb=request.verb,
            group=address.resource.group,
            resource=address.full_resource,
            namespace=address.namespace,
            name=address.name,
            code=code,
        )
        with self._audit_lock:
            self._audit.append(entry)

    def respond(self, request: ApiRequest) -> Answer | WatchStream:
        """Do what the request says; raises :class:`~.problems.ApiProblem`."""
        self._authorize(request)
        special = self._special(request)
        if special is not None:
            return special(request)
        match request.verb:
            case "list":
                return Answer(200, self.lists.page(request))
            case "watch":
                return self._watch(request)
            case "get":
                key = (request.address.namespace, request.address.name)
                stored = self.store.get(request.address.storage, key)
                return _shown(request, 200, stored)
            case "create":
                return _shown(request, 201, self._registry.create(request))
            case "update":
                return _shown(request, 200, self._registry.update(request))
            case "patch":
                return _shown(request, 200, self._registry.patch(request))
            case "delete":
                return self._delete(request)
            case _:
                return self._delete_collection(request)

    def _authorize(self, request: ApiRequest) -> None:
        address = request.address
        asked = Access(
            verb=request.verb,
            group=address.resource.group,
            resource=address.full_resource,
            namespace=address.namespace,
        )
        if self.identities.enforce and not self.identities.permits(request.user, asked):
            why = (
                f'User "{request.user.name}" cannot {asked.verb} resource "{asked.resource}" '
                f'in API group "{asked.group}"'
            )
            scope = f' in the namespace "{asked.namespace}"' if asked.namespace else ""
            raise problems.forbidden(address.resource, address.name, why + scope)
        if request.params.get("dryRun"):
            raise problems.bad_request("dryRun is not simulated")

    def _special(self, request: ApiRequest) -> Callable[[ApiRequest], Answer] | None:
        resource, subresource = request.address.resource, request.address.subresource
        if resource is TOKEN_REVIEWS or resource is ACCESS_REVIEWS:
            return self._review
        if resource is BINDINGS or subresource == "binding":
            return self._bind
        if subresource == "eviction":
            return lambda asked: Answer(201, encode(self._registry.evict(asked)))
        return None

    def _review(self, request: ApiRequest) -> Answer:
        is_token = request.address.resource is TOKEN_REVIEWS
        review = self.identities.review_token if is_token else self.identities.review_access
        return Answer(201, encode(review(request.object())))

    def _bind(self, request: ApiRequest) -> Answer:
        binding = request.object()
        own_name = str((binding.get("metadata") or {}).get("name") or "")
        name = request.address.name or own_name
        if own_name and own_name != name:
            raise problems.bad_request(
                f"the name of the object ({own_name}) does not match the name on the URL ({name})"
            )
        return Answer(201, encode(pods.bind(self.store, request.address.namespace, name, binding)))

    def _watch(self, request: ApiRequest) -> WatchStream:
        if request.params.get("sendInitialEvents"):
            cause = ("sendInitialEvents", "Forbidden: the WatchList feature gate is disabled")
            raise problems.invalid("ListOptions", "", [cause])
        since = check_version(request)
        if since and self.expired_watch_is_http:
            self.store.changes_since(request.address.storage, since)
        bookmarks = request.flag("allowWatchBookmarks")
        options = WatchOptions(
            since=since,
            seconds=float(request.number("timeoutSeconds") or random.randint(1800, 3600)),  # noqa: S311
            bookmark_every=self.bookmark_every if bookmarks else None,
        )
        return WatchStream(self.store, request.address, selection(request), options)

    def _delete(self, request: ApiRequest) -> Answer:
        key = (request.address.namespace, request.address.name)
        before = self.store.get(request.address.storage, key)
        stored = self._registry.delete(request)
        if stored is not None:
            return _shown(request, 200, stored)
        uid = str(before.document["metadata"]["uid"])
        return Answer(200, encode(problems.success(request.address.resource, key[1], uid)))

    def _delete_collection(self, request: ApiRequest) -> Answer:
        matches = selection(request)
        grace = request.options().get("gracePeriodSeconds", request.number("gracePeriodSeconds"))
        for stored in self.store.listing(request.address.storage, request.address.namespace)[1]:
            if matches(stored.document):
                one = replace(request.address, namespace=stored.key[0], name=stored.key[1])
                self._registry.delete_one(one, {}, grace)
        return Answer(200, encode(problems.success()))


def _shown(request: ApiRequest, code: int, stored: StoredObject) -> Answer:
    return Answer(code, encoded_as(request.address, stored))
