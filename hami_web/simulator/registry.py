"""The verbs on stored objects, with the checks that the real registry makes around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hami_web.simulator import event_versions, pods, problems
from hami_web.simulator.admission import Admission, Admitted
from hami_web.simulator.documents import JsonObject, metadata
from hami_web.simulator.patches import apply_patch
from hami_web.simulator.policies import Policies
from hami_web.simulator.requests import Address, ApiRequest
from hami_web.simulator.resources import (
    DISRUPTION_BUDGETS,
    EVENTS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    STORED,
)
from hami_web.simulator.store import Store, StoredObject
from hami_web.simulator.validation import check_object, normalize_object
from hami_web.simulator.writes import (
    check_delete_preconditions,
    check_envelope,
    check_preconditions,
    from_storage,
    give_identity,
    is_released,
    merged,
    to_storage,
)


class Registry:
    """Create, update, patch and delete on :class:`Store`."""

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._policies = Policies(store)
        self._admission = admission

    def create(self, request: ApiRequest) -> StoredObject:
        """Admit, complete, check and store a new object."""
        address = request.address
        document = request.object()
        check_envelope(address, document)
        if metadata(document).get("resourceVersion"):
            raise problems.ApiProblem(
                500, "", "resourceVersion should not be set on objects to be created"
            )
        if address.namespace:
            self._check_namespace(address)
        document = to_storage(address, document)
        return self._store_new(address, request, document)

    def _store_new(
        self, address: Address, request: ApiRequest, document: JsonObject
    ) -> StoredObject:
        storage = address.storage
        normalize_object(storage, document)
        metadata(document)["creationTimestamp"] = None
        if storage is PODS:
            self._complete_pod(document)
        document = self._admit(document, Admitted("CREATE", address, request.user))
        give_identity(address, document)
        if storage is PODS:
            pods.start_status(document)
        elif storage is NAMESPACES:
            document["status"] = {"phase": "Active"}
        elif storage.has_status and not storage.kept_status:
            document.pop("status", None)
        check_object(storage, document)
        if storage is EVENTS:
            event_versions.check_namespace(document)
        return self._store.create(storage, document)

    def _admit(self, document: JsonObject, write: Admitted) -> JsonObject:
        """The object after webhooks and policies; those see it as the request has it."""
        address = write.address
        document = self._admission.mutate(document, write)
        normalize_object(address.storage, document)
        old = None if write.old is None else from_storage(address, write.old)
        self._policies.check(from_storage(address, document), replace(write, old=old))
        return document

    def _complete_pod(self, pod: JsonObject) -> None:
        spec = pod.setdefault("spec", {})
        class_name = spec.get("priorityClassName")
        name = str(metadata(pod).get("name") or metadata(pod).get("generateName") or "")
        priority = 0
        if class_name:
            try:
                stored = self._store.get(PRIORITY_CLASSES, ("", class_name))
            except problems.ApiProblem as error:
                why = f"no PriorityClass with name {class_name} was found"
                raise problems.forbidden(PODS, name, why) from error
            priority = int(stored.document.get("value", 0))
        if spec.get("priority") not in (None, priority):
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod "
                f"spec; priority admission controller computed {priority} from the given "
                "PriorityClass name"
            )
            raise problems.forbidden(PODS, name, why)
        pods.complete_new_pod(pod, priority)

    def _check_namespace(self, address: Address) -> None:
        namespace = self._store.get(NAMESPACES, ("", address.namespace)).document
        if metadata(namespace).get("deletionTimestamp"):
            why = f"unable to create new content in namespace {address.namespace}"
            raise problems.forbidden(address.resource, "", f"{why} because it is being terminated")

    def update(self, request: ApiRequest) -> StoredObject:
        """Replace an object (or its status) by the body."""
        address = request.address
        document = request.object()
        check_envelope(address, document)
        document = to_storage(address, document)
        key = (address.namespace, address.name)
        if address.storage.create_on_update:
            try:
                self._store.get(address.storage, key)
            except problems.ApiProblem:
                metadata(document).setdefault("name", address.name)
                self._check_namespace(address)
                return self._store_new(address, request, document)
        if not metadata(document).get("name"):
            cause = ("metadata.name", "Required value: name or generateName is required")
            raise problems.invalid(address.resource.kind, "", [cause])
        required = not address.resource.unconditional_update
        if required and not metadata(document).get("resourceVersion"):
            text = "Invalid value: 0x0: must be specified for an update"
            cause = ("metadata.resourceVersion", text)
            raise problems.invalid(address.resource.kind, address.name, [cause])
        return self._replace(request, lambda _: document)

    def patch(self, request: ApiRequest) -> StoredObject:
        """Apply a patch to an object (or its status)."""
        address = request.address
        if "json" not in request.content_type:
            accepted = "application/json-patch+json, application/merge-patch+json"
            raise problems.unsupported_media_type(request.content_type, accepted)
        patch = request.document()

        def edited(current: JsonObject) -> JsonObject:
            result = apply_patch(request.content_type, from_storage(address, current), patch)
            check_envelope(address, result)
            return to_storage(address, result)

        return self._replace(request, edited)

    def _replace(
        self, request: ApiRequest, edited: Callable[[JsonObject], JsonObject]
    ) -> StoredObject:
        """Run a write whose webhooks are called outside the store's lock; retry when it moved."""
        address = request.address
        storage, key = address.storage, (address.namespace, address.name)
        while True:
            old = self._store.get(storage, key)
            new = edited(old.fresh())
            check_preconditions(request, old.document, new)
            new = merged(address, old.fresh(), new)
            normalize_object(storage, new)
            write = Admitted("UPDATE", address, request.user, old.document)
            new = self._admit(new, write)
            check_object(storage, new)
            if storage is PODS:
                pods.check_pod_update(old.document, new)
            written = self._swap(address, old, new)
            if written is not None:
                return written

    def _swap(self, address: Address, old: StoredObject, new: JsonObject) -> StoredObject | None:
        """Store ``new`` if ``old`` is still current; None when another write came first."""
        moved = False

        def settle(current: JsonObject) -> JsonObject | None:
            nonlocal moved
            moved = metadata(current)["resourceVersion"] != str(old.version)
            if moved:
                return current
            return None if is_released(new) else new

        stored = self._store.change(address.storage, (address.namespace, address.name), settle)
        return None if moved else stored

    def delete(self, request: ApiRequest) -> StoredObject | None:
        """Delete or start to delete an object; None when it is gone and its kind shows no body."""
        address = request.address
        options = request.options()
        grace = options.get("gracePeriodSeconds", request.number("gracePeriodSeconds"))
        return self.delete_one(address, options.get("preconditions") or {}, grace)

    def delete_one(
        self, address: Address, preconditions: JsonObject, grace: int | None
    ) -> StoredObject | None:
        """Delete one object with ``grace`` seconds (Pods only); raises 404 or 409."""

        def mark(current: JsonObject) -> JsonObject | None:
            check_delete_preconditions(address, current, preconditions)
            seconds = pods.grace_seconds(current, grace) if address.storage is PODS else 0
            return pods.mark_deleted(current, seconds)

        key = (address.namespace, address.name)
        if address.storage is NAMESPACES:
            self._empty_namespace(address.name)
        stored = self._store.change(address.storage, key, mark)
        return stored if address.storage in (PODS, NAMESPACES) else None

    def _empty_namespace(self, namespace: str) -> None:
        for resource in STORED:
            if not resource.namespaced:
                continue
            for stored in self._store.listing(resource, namespace)[1]:
                self._store.change(resource, stored.key, lambda _: None)

    def evict(self, request: ApiRequest) -> JsonObject:
        """``POST pods/NAME/eviction``: a deletion that disruption budgets may refuse with 429."""
        address = request.address
        eviction = request.object()
        key = (address.namespace, address.name)
        pod = self._store.get(PODS, key).document
        if not pods.is_ignored_by_budgets(pod):
            self._check_budgets(pod)
        options = eviction.get("deleteOptions") or {}
        self.delete_one(
            address, options.get("preconditions") or {}, options.get("gracePeriodSeconds")
        )
        return problems.success() | {"code": 201}

    def _check_budgets(self, pod: JsonObject) -> None:
        namespace = str(metadata(pod)["namespace"])
        _, siblings = self._store.listing(PODS, namespace)
        for stored in self._store.listing(DISRUPTION_BUDGETS, namespace)[1]:
            if not pods.covers(stored.document, pod):
                continue
            status = pods.disruption_status(stored.document, siblings)
            if status["disruptionsAllowed"] < 1:
                raise pods.budget_refusal(stored.document, status)
