"""The agent while NVML is there: adopt, then serve, publish and reclaim until it is gone."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from hami_web.core.faults import Fault
from hami_web.core.mig_owner import Sign
from hami_web.core.trouble import Trouble
from node_agent.adoption import Adoption
from node_agent.ailments import Ailments
from node_agent.allocation import Allocator, Checks
from node_agent.cdi import CdiFiles
from node_agent.cluster import Cluster
from node_agent.config import AgentConfig
from node_agent.delivery import Delivery
from node_agent.devicenodes import DeviceNodes
from node_agent.deviceplugin.server import DevicePluginService
from node_agent.drift import Drift
from node_agent.errors import AgentError, ClusterError
from node_agent.eventwatch import EventWatch
from node_agent.guard import Guard, GuardedDriver
from node_agent.hardware import current_load
from node_agent.holders import holders
from node_agent.idle import IdleGpus
from node_agent.instances import InstanceManager
from node_agent.journal import Journal
from node_agent.locks import GpuLocks
from node_agent.metrics import AgentMetrics
from node_agent.nodemaking import DeviceRoot, NodeMaker
from node_agent.nvml.ports import DriverError, DriverUnavailable, MigDriver
from node_agent.observer import Observer
from node_agent.ownership import InstanceRecord, RecordState
from node_agent.planning import foreign_instances, missing_records
from node_agent.podevents import PodEvents
from node_agent.pods import ObservedPod
from node_agent.podwatch import PodWatch
from node_agent.preparation import Preparation, Rules
from node_agent.publisher import Publisher, Sight
from node_agent.reclaimer import Hooks, Reclaimer
from node_agent.restoration import Restoration
from node_agent.survey import Survey
from node_agent.takeover import TakeOver
from node_agent.trust import Trust
from node_agent.turn import PodFinder
from node_agent.unexplained import Unexplained

logger = logging.getLogger(__name__)

_RETRY_FIRST_SECONDS: Final = 0.5
_RETRY_MOST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What outlives an NVML session."""

    config: AgentConfig
    cluster: Cluster
    service: DevicePluginService
    survey: Survey
    publisher: Publisher
    events: PodEvents
    metrics: AgentMetrics
    trust: Trust


class _Witness(Observer):
    """Takes CDI files away with their instances, and times NVML."""

    def __init__(self, delivery: Delivery, metrics: AgentMetrics) -> None:
        self._delivery = delivery
        self._metrics = metrics

    def gone(self, record: InstanceRecord) -> None:
        self._delivery.withdraw(record)

    def took(self, operation: str, seconds: float) -> None:
        self._metrics.instance_seconds.labels(operation).observe(seconds)


class Session:
    """One NVML session's work. :meth:`run` returns when told to stop, raises when NVML is gone."""

    def __init__(self, parts: Parts, driver: MigDriver) -> None:
        config = parts.config
        self._parts = parts
        self._changed = threading.Event()
        self._guard = Guard(parts.cluster, self._owner_changed)
        self._driver = driver = GuardedDriver(driver, self._guard)
        self._journal = Journal(config.state_dir, current_load(config.simulated_nvml))
        self._delivery = Delivery(
            config.delivery,
            driver,
            DeviceNodes(config.driver_root),
            NodeMaker(
                DeviceRoot(
                    config.driver_root, config.host_driver_root, make=config.make_device_nodes
                )
            ),
            CdiFiles(config.cdi_dir, config.cdi_base_spec),
        )
        locks = GpuLocks(config.state_dir / "locks")
        self._instances = InstanceManager(
            driver,
            self._journal,
            locks,
            observer=_Witness(self._delivery, parts.metrics),
            excluded=config.excluded_gpus,
        )
        trust = parts.trust
        self._unexplained = Unexplained(trust, self._changed.set)
        self._ailments = Ailments(
            parts.metrics, parts.events, self._instances.records, self._changed.set
        )
        self._event_watch = EventWatch(driver, self._ailments, self._changed.set)
        self._reclaimer = Reclaimer(
            parts.cluster,
            self._instances,
            parts.metrics,
            hooks=Hooks(self._changed.set, self._listed, lambda: self._allocator.serving),
            events=parts.events,
        )
        self._sight = Sight(
            driver,
            self._instances,
            Drift(driver, self._instances, locks),
            self._ailments.of,
            self._unexplained,
        )
        self._allocator = Allocator(
            parts.cluster,
            self._instances,
            self._reclaimer,
            checks=Checks(PodFinder(parts.cluster, config.node_name, config.resource_name), trust),
            delivery=self._delivery,
            events=parts.events,
        )
        self._watch = PodWatch(parts.cluster, self._reclaimer.wake)
        self._take_over = self._prepare_take_over(locks, trust)

    def _prepare_take_over(self, locks: GpuLocks, trust: Trust) -> TakeOver:
        parts, config, instances = self._parts, self._parts.config, self._instances
        preparation = Preparation(
            parts.cluster,
            self._driver,
            instances,
            parts.metrics,
            Rules(
                config.resource_name,
                parts.survey,
                IdleGpus(self._driver, locks),
                partial(holders, config.driver_root),
            ),
        )
        return TakeOver(
            Adoption(parts.cluster, self._driver, instances, parts.metrics, parts.events),
            preparation if config.clean_idle_gpus else None,
            Restoration(parts.cluster, instances, trust, self._delivery, parts.events),
            self._delivery,
            instances,
            self._journal,
        )

    def run(self, stop: threading.Event, ready: Callable[[str], None]) -> None:
        """Adopt first; only then offer devices, serve Allocate and reclaim.

        ``ready`` is told what keeps the agent from serving, an empty text for nothing. Raises
        :class:`DriverUnavailable` when the NVML session is over.
        """
        if not self._adopt(stop, ready):
            return
        self._parts.metrics.watch_instances(self._count, self._oldest_reclaim)
        over = threading.Event()
        threads = [
            threading.Thread(
                target=self._reclaimer.run,
                args=(over, self._parts.config.reclaim_seconds),
                name="reclaimer",
            ),
            threading.Thread(target=self._watch.run, args=(over,), name="pod-watch"),
            threading.Thread(target=self._event_watch.run, args=(over,), name="gpu-errors"),
        ]
        for thread in threads:
            thread.start()
        try:
            self._parts.service.serve_with(self._allocator)
            self._publish(stop, ready)
        finally:
            self._parts.service.refuse()
            over.set()
            self._watch.end()
            self._reclaimer.wake()
            for thread in threads:
                thread.join()
            self._parts.metrics.forget_instances()

    def wake(self) -> None:
        """Make the publishing loop look at its stop event."""
        self._changed.set()

    def _adopt(self, stop: threading.Event, ready: Callable[[str], None]) -> bool:
        """Try until it succeeds; nothing is offered before the node's state is known."""
        wait = _RETRY_FIRST_SECONDS
        trouble = Trouble(logger, "no device is offered, the node's state cannot be read: %s")
        while not stop.is_set():
            try:
                report = self._take_over.run()
            except DriverUnavailable:
                raise
            except (AgentError, DriverError) as error:
                ready(f"{_word(error)}the node's state cannot be read: {error}")
                trouble.tell(error)
                stop.wait(wait)
                wait = min(wait * 2, _RETRY_MOST_SECONDS)
            else:
                # Before the first publication, which must not uncover what an earlier one told.
                self._unexplained.look(self._instances.records(), report.pods.pods)
                return True
        return False

    def _publish(self, stop: threading.Event, ready: Callable[[str], None]) -> None:
        """Discover and publish on every change of instances, and periodically."""
        config = self._parts.config
        while True:
            # Cleared before the check, so that a stop in between is not waited out.
            self._changed.clear()
            if stop.is_set():
                return
            self._take_over.late()
            written = self._parts.publisher.publish(self._sight)
            ready(self._parts.publisher.shortcoming(written=written))
            self._changed.wait(
                config.discovery_seconds
                if written
                else min(_RETRY_MOST_SECONDS, config.discovery_seconds)
            )

    def _listed(self, records: Sequence[InstanceRecord], pods: Sequence[ObservedPod]) -> None:
        """What a reclaim pass has read also tells of altered Pods and of other owners."""
        self._unexplained.look(records, pods)
        self._guard.look()

    def _owner_changed(self, sign: Sign | None) -> None:
        self._parts.metrics.other_owner.set(sign is not None)
        self._changed.set()

    def _oldest_reclaim(self) -> float:
        """Seconds since the oldest refused destroy was asked for."""
        records = self._instances.records()
        since = [r.since for r in records if r.state is RecordState.RECLAIMING]
        return max(0.0, time.time() - min(since)) if since else 0.0

    def _count(self) -> Iterable[tuple[str, int]]:
        """Instances by state, for the metrics; foreign ones only while NVML answers."""
        records = self._instances.records()
        counts: Counter[str] = Counter({"intent": 0, "realized": 0, "reclaiming": 0})
        counts.update(record.state.value for record in records)
        try:
            live = [
                item
                for gpu in self._driver.gpus()
                if gpu.mig_active
                for item in self._driver.instances(gpu.uuid)
            ]
        except DriverError:
            return list(counts.items())
        counts["foreign"] = len(foreign_instances(live, records))
        counts["missing"] = len(missing_records(live, records))
        return list(counts.items())


def _word(error: Exception) -> str:
    """The word for an API server that does not answer or refuses; nothing for NVML's own."""
    if not isinstance(error, ClusterError):
        return ""
    refused = error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    return f"{Fault.API_SERVER_FORBIDS if refused else Fault.API_SERVER}: "
