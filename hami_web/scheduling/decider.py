"""The use-cases ``/filter`` and ``/bind``, and waking who waits."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hami_web.cluster.errors import ClusterError
from hami_web.cluster.views import PodView
from hami_web.core.errors import CoreError, InvalidRequest
from hami_web.core.request import PodRequest, parse_pod_request
from hami_web.scheduling.bind import Binder, BindOrder
from hami_web.scheduling.decision_log import DecisionLog, Outcome
from hami_web.scheduling.decisions import Fits, NotReady, RefusedEverywhere, refused_everywhere
from hami_web.scheduling.errors import BindError
from hami_web.scheduling.events import EventReason, EventRecorder, Regarding
from hami_web.scheduling.explanations import (
    bound_note,
    fit_note,
    nodes_by_reason,
    refusal_note,
)
from hami_web.scheduling.measures import Durations
from hami_web.scheduling.state import ClusterState, Held
from hami_web.scheduling.waiting import Waiting, WaitingPods


@dataclass(frozen=True, slots=True)
class Core:
    """What decisions need. ``not_ready_because`` says why none may be made now."""

    state: ClusterState
    waiting: WaitingPods
    binder: Binder
    events: EventRecorder
    log: DecisionLog
    not_ready_because: Callable[[], str | None]


class Decider:
    """Decides for one cluster; safe for threads. ``notice`` is called when a Pod may fit now."""

    def __init__(
        self,
        core: Core,
        *,
        notice: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.filter_durations = Durations()
        self.rejections: Counter[str] = Counter()
        """Refused nodes by reason word."""
        self._core = core
        self._notice = notice
        self._clock = clock

    def filter(self, pod: PodView, names: tuple[str, ...]) -> Fits | RefusedEverywhere:
        """Choose a node and hold the Pod's devices; a Pod without GPUs fits everywhere.

        Raises NotReady, or InvalidRequest naming what the Pod asks for wrongly.
        """
        began = self._clock()
        self._check_ready()
        try:
            request = parse_pod_request(pod.container_specs(), pod.annotations)
            if not request.devices:
                return Fits(names)
            return self._filter(pod, request, names)
        except CoreError as error:
            about = _about(pod)
            self._core.events.record(about, EventReason.FILTERING_FAILED, str(error))
            self._core.log.add(Outcome.INVALID, about, str(error), code=error.code)
            raise
        finally:
            self.filter_durations.observe(self._clock() - began)

    def bind(self, order: BindOrder) -> None:
        """Bind a Pod where its devices are held; raises BindError or ClusterError."""
        self._check_ready()
        about = Regarding(order.namespace, order.name, order.uid)
        try:
            self._core.binder.bind(order)
        except (BindError, ClusterError, CoreError) as error:
            text, node = str(error), order.node
            self._core.events.record(about, EventReason.BINDING_FAILED, text)
            self._core.log.add(Outcome.BIND_FAILED, about, text, node=node, code=error.code)
            raise
        note = bound_note(order.node, order.pod)
        self._core.events.record(about, EventReason.BINDING_SUCCEED, note)
        self._core.log.add(Outcome.BOUND, about, note, node=order.node)

    def hold_if_free(self, waiting: Waiting) -> bool:
        """Hold the devices of a Pod that waits, if they are free now."""
        if self._core.not_ready_because() is not None:
            return False
        pod, state = waiting.pod, self._core.state
        try:
            request = parse_pod_request(pod.container_specs(), pod.annotations)
        except InvalidRequest:
            return False
        if not request.devices:
            return False
        # Which nodes the scheduler would leave is not known for an adopted Pod; should it leave
        # others than the one held here, its next /filter decides anew.
        names = state.node_names() if waiting.names is None else waiting.names
        return isinstance(state.filter(pod, request, names), Held)

    def _check_ready(self) -> None:
        reason = self._core.not_ready_because()
        if reason is not None:
            raise NotReady(reason)

    def _filter(
        self, pod: PodView, request: PodRequest, names: tuple[str, ...]
    ) -> Fits | RefusedEverywhere:
        core = self._core
        about = _about(pod)
        version = core.state.version
        answer = core.state.filter(pod, request, names)
        if isinstance(answer, Held):
            core.waiting.drop(pod.uid)
            note = fit_note(answer.node, answer.hold.reservations)
            core.events.record(about, EventReason.FILTERING_SUCCEED, note)
            core.log.add_hold(about, note, answer.hold)
            return Fits((answer.node,))
        by_reason = nodes_by_reason(answer.details)
        note = refusal_note(len(names), by_reason)
        core.waiting.add(pod, names, note)
        core.events.record(about, EventReason.FILTERING_FAILED, note)
        core.log.add(Outcome.REFUSED, about, note, refused=answer)
        self.rejections.update({word: len(nodes) for word, nodes in by_reason.items()})
        if core.state.version != version:
            # Something became free between the decision and the note that the Pod waits.
            self._notice()
        return refused_everywhere(answer.details)


def _about(pod: PodView) -> Regarding:
    return Regarding(pod.metadata.namespace, pod.metadata.name, pod.uid)
