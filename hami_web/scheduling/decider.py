"""The use-cases ``/filter`` and ``/bind``, and waking who waits."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hami_web.cluster.errors import ClusterError
from hami_web.cluster.views import PodView
from hami_web.core.errors import CoreError, InvalidRequest
from hami_web.core.log_lines import about, current, new_request_id
from hami_web.core.request import PodRequest, parse_pod_request
from hami_web.core.tracing import annotate, span
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

logger = logging.getLogger(__name__)


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
            with _about(pod, new_request_id()), span("filter"):
                return self._filter(pod, request, names)
        except CoreError as error:
            regarding = _regarding(pod)
            self._core.events.record(regarding, EventReason.FILTERING_FAILED, str(error))
            self._core.log.add(Outcome.INVALID, regarding, str(error), code=error.code)
            with _about(pod, new_request_id()):
                _tell(Outcome.INVALID, str(error))
            raise
        finally:
            self.filter_durations.observe(self._clock() - began)

    def bind(self, order: BindOrder) -> None:
        """Bind a Pod where its devices are held; raises BindError or ClusterError."""
        self._check_ready()
        hold = self._core.state.hold_of(order.uid)
        attempt = (hold and hold.request_id) or new_request_id()
        with (
            about(request_id=attempt, pod=order.pod, pod_uid=order.uid),
            span("bind", **{"k8s.node.name": order.node}),
        ):
            self._bind(order)

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
        with _about(pod, new_request_id()):
            return isinstance(state.filter(pod, request, names), Held)

    def _check_ready(self) -> None:
        reason = self._core.not_ready_because()
        if reason is not None:
            raise NotReady(reason)

    def _bind(self, order: BindOrder) -> None:
        core, node = self._core, order.node
        regarding = Regarding(order.namespace, order.name, order.uid)
        try:
            core.binder.bind(order)
        except (BindError, ClusterError, CoreError) as error:
            text = str(error)
            core.events.record(regarding, EventReason.BINDING_FAILED, text)
            core.log.add(Outcome.BIND_FAILED, regarding, text, node=node, code=error.code)
            _tell(Outcome.BIND_FAILED, text, node=node)
            raise
        note = bound_note(node, order.pod)
        core.events.record(regarding, EventReason.BINDING_SUCCEED, note)
        core.log.add(Outcome.BOUND, regarding, note, node=node)
        _tell(Outcome.BOUND, note, node=node)

    def _filter(
        self, pod: PodView, request: PodRequest, names: tuple[str, ...]
    ) -> Fits | RefusedEverywhere:
        core = self._core
        regarding = _regarding(pod)
        version = core.state.version
        answer = core.state.filter(pod, request, names)
        if isinstance(answer, Held):
            core.waiting.drop(pod.uid)
            note = fit_note(answer.node, answer.hold.reservations)
            core.events.record(regarding, EventReason.FILTERING_SUCCEED, note)
            core.log.add_hold(regarding, note, answer.hold)
            # A hold that still stands keeps the id of the attempt that made it.
            attempt = answer.hold.request_id or current("request_id")
            _tell(Outcome.HELD, note, node=answer.node, request_id=attempt)
            return Fits((answer.node,))
        by_reason = nodes_by_reason(answer.details)
        note = refusal_note(len(names), by_reason)
        is_new = core.waiting.add(pod, names, note)
        core.events.record(regarding, EventReason.FILTERING_FAILED, note)
        core.log.add(Outcome.REFUSED, regarding, note, refused=answer)
        # Pods that wait are asked about again and again.
        _tell(Outcome.REFUSED, note, level=logging.INFO if is_new else logging.DEBUG)
        self.rejections.update({word: len(nodes) for word, nodes in by_reason.items()})
        if core.state.version != version:
            # Something became free between the decision and the note that the Pod waits.
            self._notice()
        return refused_everywhere(answer.details)


def _regarding(pod: PodView) -> Regarding:
    return Regarding(pod.metadata.namespace, pod.metadata.name, pod.uid)


def _about(pod: PodView, request_id: str) -> AbstractContextManager[None]:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return about(request_id=request_id, pod=name, pod_uid=pod.uid)


def _tell(outcome: Outcome, note: str, *, level: int = logging.INFO, **fields: str) -> None:
    annotate(**{"hami.outcome": outcome.value})
    logger.log(level, note, extra={"outcome": outcome.value, **fields})
