"""After a reboot or a driver reload: Pods that still run get their instances anew.

A reboot takes all instances and leaves Pods and their annotations; the kubelet restarts the
containers without asking for devices again. Where the journal shows that an instance was there
before, it is made again at its placement, which usually brings its old UUID back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hami_web.core.log_lines import about
from hami_web.core.reservation import RuntimeIdentity
from node_agent.adoption import AdoptionReport
from node_agent.cluster import Cluster
from node_agent.delivery import Delivery
from node_agent.errors import AgentError, OtherOwner, OwnerUnknown
from node_agent.instances import InstanceManager
from node_agent.locks import Deadline
from node_agent.nvml.ports import DriverError
from node_agent.ownership import Claim, InstanceRecord, Owner, RecordState
from node_agent.planning import AdoptionDecision, Verdict
from node_agent.podevents import PodEvents, PodReference, Reason
from node_agent.pods import ObservedPod
from node_agent.reservations import realized_annotations
from node_agent.trust import Trust

logger = logging.getLogger(__name__)

_SECONDS: Final = 20.0


class Restoration:
    """One pass at the start of a session; one failure stops no other.

    What another owner of the layout forbids is for a later pass, see :attr:`waiting`.
    """

    def __init__(
        self,
        cluster: Cluster,
        instances: InstanceManager,
        trust: Trust,
        delivery: Delivery,
        events: PodEvents,
    ) -> None:
        self._cluster = cluster
        self._instances = instances
        self._trust = trust
        self._delivery = delivery
        self._events = events
        self.waiting = False
        """True after a pass in which something was not made anew for another owner's sake."""

    def run(self, report: AdoptionReport, earlier: Mapping[Owner, InstanceRecord]) -> None:
        """Make anew what ``earlier`` records show to have existed and Pods still count on."""
        pods = {pod.uid: pod for pod in report.pods.pods}
        self.waiting = False
        current = {record.owner: record for record in self._instances.records()}
        for decision in report.decisions:
            claim = decision.claim
            record, pod = earlier.get(claim.owner), pods.get(claim.owner.pod_uid)
            if record is None or pod is None or pod.deleting or record.spec != claim.spec:
                continue
            if _is_missing(decision, current.get(claim.owner)):
                with about(pod=pod.key, pod_uid=pod.uid):
                    self._restore(pod, claim, record)

    def _restore(self, pod: ObservedPod, claim: Claim, record: InstanceRecord) -> None:
        deadline = Deadline(_SECONDS)
        reference = PodReference(pod.namespace, pod.name, pod.uid)
        try:
            self._trust.check(pod)
            made = self._instances.realize(
                replace(claim, identity=None), record.device_ids, deadline
            )
            self._delivery.deliver([(claim.spec.gpu_uuid, made.identity)], deadline)
            if made.identity != claim.identity:
                self._write(pod, claim.owner, made.identity)
        except (AgentError, DriverError) as error:
            self.waiting |= isinstance(error, OtherOwner | OwnerUnknown)
            logger.warning("%s of Pod %s is not made anew: %s", claim.spec, pod.key, error)
            note = f"{claim.spec} did not outlive a reboot and is not made anew: {error}"
            self._events.tell(reference, Reason.INSTANCE_LOST, note)
            return
        logger.info("made %s of Pod %s anew", claim.spec, pod.key)
        kept = record.identity is not None and record.identity.mig_uuid == made.identity.mig_uuid
        advice = "" if kept else "; its UUID is another one, the Pod must be recreated to use it"
        note = f"{claim.spec} was made anew after a reboot{advice}"
        self._events.tell(reference, Reason.INSTANCE_RESTORED, note)

    def _write(self, pod: ObservedPod, owner: Owner, identity: RuntimeIdentity) -> None:
        """Should this fail, the reclaimer writes it: the record says what exists."""
        fresh = self._cluster.pod(pod.namespace, pod.name)
        if fresh is not None and fresh.uid == pod.uid:
            self._cluster.patch_pod(fresh, realized_annotations(fresh, {owner: identity}, None))


def _is_missing(decision: AdoptionDecision, record: InstanceRecord | None) -> bool:
    """True for an instance that is gone, and for one whose making anew was interrupted."""
    if record is None:
        return decision.verdict is Verdict.STALE
    interrupted = record.state is RecordState.INTENT
    return interrupted and decision.verdict in (Verdict.STALE, Verdict.AWAIT)
