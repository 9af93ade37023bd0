"""Which device ids each container of each Pod holds, by the kubelet's rules of sharing."""

from __future__ import annotations

from collections.abc import Iterator

from hami_web.simulator.device_plugins import DevicePlugins, Injected
from hami_web.simulator.documents import JsonObject, uid_of


class ContainerDevices:
    """Allocates for whole Pods. Ids stay held until :meth:`release`.

    An init container's ids are given to later containers of its Pod first; those of app containers
    and sidecars (init containers that restart) are nobody else's.
    """

    def __init__(self, plugins: DevicePlugins) -> None:
        self._plugins = plugins
        self._held: dict[str, dict[str, Injected]] = {}

    def allocate(self, pod: JsonObject) -> dict[str, Injected]:
        """Call Allocate for every container that asks, in order; raises AllocationFailed.

        What earlier containers of the Pod got stays theirs until the Pod is released, also when a
        later one fails: that is what the kubelet does.
        """
        given = self._held.setdefault(uid_of(pod), {})
        reusable: set[str] = set()
        for container, is_init in containers_in_order(pod):
            injected = Injected()
            for resource, count in device_requests(container, self._plugins):
                injected = injected.and_also(
                    self._plugins.allocate(resource, count, taken=self._taken(), reusable=reusable)
                )
                given[container["name"]] = injected
            given[container["name"]] = injected
            own = set(injected.device_ids)
            reusable = reusable | own if is_init else reusable - own
        return dict(given)

    def of(self, pod_uid: str, container: str) -> Injected | None:
        """What a container of a Pod that is not released was given."""
        return self._held.get(pod_uid, {}).get(container)

    def release(self, pod_uid: str) -> None:
        """The Pod is over: its ids are free."""
        self._held.pop(pod_uid, None)

    def _taken(self) -> set[str]:
        given = (injected for pod in self._held.values() for injected in pod.values())
        return {device for injected in given for device in injected.device_ids}


def containers_in_order(pod: JsonObject) -> Iterator[tuple[JsonObject, bool]]:
    """(container, its devices may be reused): init containers first; sidecars keep theirs."""
    for container in pod["spec"].get("initContainers") or []:
        yield container, container.get("restartPolicy") != "Always"
    for container in pod["spec"]["containers"]:
        yield container, False


def device_requests(container: JsonObject, plugins: DevicePlugins) -> Iterator[tuple[str, int]]:
    """(resource, count) of what plugins of this node serve; the kubelet ignores the rest."""
    registered = plugins.allocatable()
    for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
        if name in registered and int(amount) > 0:
            yield name, int(amount)


def pod_requests(pod: JsonObject, plugins: DevicePlugins) -> dict[str, int]:
    """Per resource: the sum of app containers, or a larger init container."""
    total: dict[str, int] = {}
    for container in pod["spec"]["containers"]:
        for resource, count in device_requests(container, plugins):
            total[resource] = total.get(resource, 0) + count
    for container in pod["spec"].get("initContainers") or []:
        for resource, count in device_requests(container, plugins):
            total[resource] = max(total.get(resource, 0), count)
    return total
