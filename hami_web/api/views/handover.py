"""Take-overs of nodes: follow, start, approve, turn back, close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.access.roles import Verb
from hami_web.api.bodies import read_body
from hami_web.api.codes import CONFLICT, NOT_FOUND
from hami_web.api.details import DetailView
from hami_web.api.listing import ListView
from hami_web.api.parameters import by_choice, by_text, by_time, check_known
from hami_web.api.problems import Problem
from hami_web.api.serializers import handover as shapes
from hami_web.api.serializers.verbs import EmptyBody
from hami_web.cluster.errors import NotFound
from hami_web.handover.lifecycle import TrialState
from hami_web.handover.models import (
    EventKind,
    HandoverEvent,
    NodeHandover,
    Outcome,
    ProfileTest,
)
from hami_web.handover.steps import Direction, Step
from hami_web.handover.store import HandoverOpen, HandoverOver, OtherStep
from hami_web.verbs import handover as verbs

NOTHING = OpenApiExample("nothing is asked", {}, request_only=True)
NODE = OpenApiExample("a node", {"node": "gpu-1", "direction": "forward"}, request_only=True)
STEP = OpenApiExample("a step", {"step": "cordon"}, request_only=True)


class Handovers(ListView):
    """Take-overs, newest first."""

    serializer_class = shapes.HandoverSerializer
    filters = (
        *by_text("node"),
        *by_choice("step", [item.value for item in Step]),
        *by_choice("outcome", Outcome.values),
        *by_time("started_at"),
    )
    ordering = ("started_at", "node", "ended_at")

    def rows(self) -> QuerySet[NodeHandover]:
        """All that are kept."""
        return NodeHandover.objects.all()


class HandoverEvents(ListView):
    """What happened to a take-over, in order."""

    serializer_class = shapes.HandoverEventSerializer
    filters = (*by_choice("kind", EventKind.values), *by_text("step"), *by_time("at"))
    ordering = ("at",)

    def rows(self) -> QuerySet[HandoverEvent]:
        """Of the take-over in the address."""
        return HandoverEvent.objects.filter(handover=_handover(self.kwargs))


class HandoverTests(ListView):
    """The lifecycle test of each profile."""

    serializer_class = shapes.ProfileTestSerializer
    filters = (*by_text("profile"), *by_choice("state", [item.value for item in TrialState]))
    ordering = ("profile", "state")

    def rows(self) -> QuerySet[ProfileTest]:
        """Of the take-over in the address."""
        return ProfileTest.objects.filter(handover=_handover(self.kwargs))


class HandoverDetail(DetailView):
    """One take-over."""

    of, column = Handovers, "id"
    serializer_class = shapes.HandoverSerializer

    def changed(self, change: Callable[[], NodeHandover], pk: int) -> Response:
        """The take-over as it is after the change. 409 where its state does not allow it."""
        self.row(pk=pk)
        try:
            return Response(self.document(change()))
        except (HandoverOver, OtherStep) as error:
            raise Problem(CONFLICT, str(error), current=self.document(self.row(pk=pk))) from error


class StartHandover(HandoverDetail):
    """Begin to lead a node over, or back; the cluster is not changed by that."""

    http_method_names = ["post", "options"]
    verb = Verb.HAND_OVER

    @extend_schema(
        operation_id="handover_start",
        request=shapes.StartBody,
        examples=[NODE],
        responses={201: shapes.HandoverSerializer},
        filters=False,
    )
    def post(self, request: Request) -> Response:
        """The new take-over. 409 with the one that is open, where there is one of the node."""
        check_known(request, ("format",))
        body = read_body(shapes.StartBody, request)
        try:
            row = verbs.start(self.actor, body["node"], Direction(body["direction"]))
        except HandoverOpen as error:
            current = self.document(error.handover)
            raise Problem(CONFLICT, str(error), current=current) from error
        except NotFound as error:
            raise Problem(NOT_FOUND, f"there is no node {body['node'][:200]!r}") from error
        address = request.path.removesuffix("start") + str(row.pk)
        return Response(self.document(row), status=201, headers={"Location": address})


class _StepVerb(HandoverDetail):
    http_method_names = ["post", "options"]
    verb = Verb.HAND_OVER

    def of_step(self, request: Request, pk: int, change: Callable[..., NodeHandover]) -> Response:
        """Change what concerns the step that the body names."""
        check_known(request, ("format",))
        step = read_body(shapes.StepBody, request)["step"]
        return self.changed(lambda: change(self.actor, pk, step), pk)


class ApproveStep(_StepVerb):
    """Let the worker do a step as soon as nothing forbids it."""

    @extend_schema(
        operation_id="handover_approve",
        request=shapes.StepBody,
        examples=[STEP],
        responses=shapes.HandoverSerializer,
        filters=False,
    )
    def post(self, request: Request, pk: int) -> Response:
        """409 where it is at another step by now, or over."""
        return self.of_step(request, pk, verbs.approve)


class WithdrawApproval(_StepVerb):
    """Take an approval back; what was done meanwhile stays."""

    @extend_schema(
        operation_id="handover_withdraw",
        request=shapes.StepBody,
        examples=[STEP],
        responses=shapes.HandoverSerializer,
        filters=False,
    )
    def post(self, request: Request, pk: int) -> Response:
        """409 where it is at another step by now, or over."""
        return self.of_step(request, pk, verbs.withdraw)


class TurnBack(HandoverDetail):
    """Lead the node back to who had it before."""

    http_method_names = ["post", "options"]
    verb = Verb.HAND_OVER

    @extend_schema(
        operation_id="handover_turn_back",
        request=EmptyBody,
        examples=[NOTHING],
        responses=shapes.HandoverSerializer,
        filters=False,
    )
    def post(self, request: Request, pk: int) -> Response:
        """409 where it is on its way back already, or over."""
        check_known(request, ("format",))
        read_body(EmptyBody, request)
        return self.changed(lambda: verbs.turn_back(self.actor, pk), pk)


class CloseHandover(HandoverDetail):
    """End it where it is; the cluster stays as it is."""

    http_method_names = ["post", "options"]
    verb = Verb.HAND_OVER

    @extend_schema(
        operation_id="handover_close",
        request=EmptyBody,
        examples=[NOTHING],
        responses=shapes.HandoverSerializer,
        filters=False,
    )
    def post(self, request: Request, pk: int) -> Response:
        """409 where it is over, or a lifecycle test has Pods in the cluster."""
        check_known(request, ("format",))
        read_body(EmptyBody, request)
        return self.changed(lambda: verbs.close(self.actor, pk), pk)


def _handover(address: dict[str, Any]) -> NodeHandover | None:
    """None while the schema is made, which knows no address."""
    if "handover" not in address:
        return None
    return get_object_or_404(NodeHandover, pk=address["handover"])
