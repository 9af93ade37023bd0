"""What namespaces with a quota use, kept current one Pod at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hami_web.core.quota import NamespaceQuota, Usage, total
from hami_web.scheduling.pods import PodRecord

UsageOf = Callable[[PodRecord], Usage]


class QuotaBook:
    """Quotas by namespace and name, and the usage of their namespaces alone. Not synchronized.

    ``usage_of`` gives what a Pod's profiles add up to, as its node publishes them at that time.
    """

    def __init__(self, usage_of: UsageOf) -> None:
        self._usage_of = usage_of
        self._quotas: dict[str, dict[str, NamespaceQuota]] = {}
        self._pods: dict[str, dict[str, Usage]] = {}
        self._used: dict[str, Usage] = {}

    def set_quota(self, quota: NamespaceQuota, pods: Iterable[PodRecord]) -> None:
        """Take a quota; ``pods`` are all that are known, for a namespace's first quota."""
        namespace = quota.namespace
        first = namespace not in self._quotas
        self._quotas.setdefault(namespace, {})[quota.name] = quota
        if first:
            own = {
                pod.identity.uid: self._usage_of(pod)
                for pod in pods
                if pod.identity.namespace == namespace
            }
            self._pods[namespace] = own
            self._used[namespace] = total(own.values())

    def recount(self, pods: Iterable[PodRecord]) -> None:
        """All Pods anew, after a complete list."""
        if not self._quotas:
            return
        self._pods = {namespace: {} for namespace in self._quotas}
        self._used = dict.fromkeys(self._quotas, Usage())
        for pod in pods:
            self.count(pod)

    def remove_quota(self, namespace: str, name: str) -> None:
        """Forget a quota, and with a namespace's last one its usage."""
        quotas = self._quotas.get(namespace, {})
        quotas.pop(name, None)
        if not quotas:
            for kept in (self._quotas, self._pods, self._used):
                kept.pop(namespace, None)

    def names(self) -> list[tuple[str, str]]:
        """Namespace and name of every quota."""
        return [(namespace, name) for namespace, own in self._quotas.items() for name in own]

    def count(self, pod: PodRecord) -> None:
        """A Pod came, or changed, or its node did."""
        own = self._pods.get(pod.identity.namespace)
        if own is None:
            return
        self.discount(pod)
        usage = own[pod.identity.uid] = self._usage_of(pod)
        namespace = pod.identity.namespace
        self._used[namespace] = self._used[namespace].plus(usage)

    def discount(self, pod: PodRecord) -> None:
        """A Pod left."""
        namespace = pod.identity.namespace
        own = self._pods.get(namespace)
        if own is not None:
            before = own.pop(pod.identity.uid, Usage())
            self._used[namespace] = self._used[namespace].minus(before)

    def limits(self, namespace: str) -> bool:
        """True when a namespace has a quota."""
        return namespace in self._quotas

    def exceeded_by(self, namespace: str, wanted: Usage) -> NamespaceQuota | None:
        """The quota that a namespace would exceed with so much more, or None."""
        if namespace not in self._quotas:
            return None
        usage = self._used[namespace].plus(wanted)
        quotas = self._quotas[namespace]
        return next((quotas[n] for n in sorted(quotas) if not quotas[n].admits(usage)), None)
