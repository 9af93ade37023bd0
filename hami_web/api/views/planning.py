"""What would happen: where Pods would go, and which would have to move; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.access.roles import Verb
from hami_web.api.bodies import read_body
from hami_web.api.codes import IMPOSSIBLE
from hami_web.api.described import A_NAME, parameter
from hami_web.api.governed import Governed
from hami_web.api.parameters import check_known, parse_whole, whole_schema
from hami_web.api.problems import InvalidBody, InvalidParameter, Problem, error_of
from hami_web.api.serializers import drain as drain_shapes
from hami_web.api.serializers import whatif as shapes
from hami_web.core.errors import InvalidRequest
from hami_web.core.policy import parse_scheduling_policy
from hami_web.history.drift import feed_caught_up_at
from hami_web.planning.drain import (
    PRIORITY_MAX,
    DrainQuestion,
    free_now,
    plan,
)
from hami_web.planning.drain_document import document_of as document_of_plan
from hami_web.planning.records import read_protected, read_records
from hami_web.planning.whatif import ask
from hami_web.planning.whatif_document import document_of, question_of
from hami_web.scheduling.records import NodeRecord

PLACEMENTS_MAX: Final = 100
NO_PLAN: Final[dict[str, object]] = {
    "exact": True,
    **{name: [] for name in ("placements", "moves", "leaving", "gpus", "commands")},
}


class WhatIf(Governed, GenericAPIView[Any]):
    """Where Pods that do not exist yet would go, by the extender's own rules; changes nothing."""

    verb = Verb.WHAT_IF
    serializer_class = shapes.WhatIfAnswerSerializer

    @extend_schema(
        request=shapes.WhatIfBody,
        responses={200: shapes.WhatIfAnswerSerializer},
        filters=False,
        examples=[
            OpenApiExample(
                "two of a profile", {"profile": "3g.20gb", "count": 2}, request_only=True
            ),
            OpenApiExample("by size", {"memory_mib": 10000, "cores": 20}, request_only=True),
        ],
    )
    def post(self, request: Request) -> Response:
        """Ranked places, or what is in the way of the next Pod."""
        check_known(request, ("format",))
        values = read_body(shapes.WhatIfBody, request)
        as_of = feed_caught_up_at()
        policy = parse_scheduling_policy(settings.SCHEDULING_POLICY)
        records = read_records()
        _check_nodes(values.get("nodes", ()), records)
        try:
            answer = ask(records, question_of(values), policy)
        except InvalidRequest as error:
            entry = error_of(error.field, error.value, error.allowed)
            raise Problem(IMPOSSIBLE, str(error), errors=[entry]) from error
        document = document_of(answer, candidates=values["candidates"], sees=self.visibility.sees)
        return Response(self.get_serializer({**document, "as_of": as_of}).data)


class DrainPlan(Governed, GenericAPIView[Any]):
    """The fewest Pods to move so that placements of a profile become free; moves nothing."""

    verb = Verb.PLAN_DRAIN
    serializer_class = drain_shapes.DrainPlanSerializer

    @extend_schema(
        parameters=[
            parameter("profile", A_NAME, "a profile's name", "3g.20gb", required=True),
            parameter(
                "count", whole_schema(1, PLACEMENTS_MAX, 1), f"1…{PLACEMENTS_MAX}, default 1", 2
            ),
            parameter(
                "max_priority",
                whole_schema(0, PRIORITY_MAX, PRIORITY_MAX),
                f"0…{PRIORITY_MAX} (default): Pods of a higher priority stay",
                1000,
            ),
        ],
        filters=False,
    )
    def get(self, request: Request) -> Response:
        """Pods, where they would fit, the GPUs before and after, and commands as text."""
        check_known(request, ("profile", "count", "max_priority", "format"))
        count = parse_whole(request, "count", 1, least=1, most=PLACEMENTS_MAX)
        most = parse_whole(request, "max_priority", PRIORITY_MAX, least=0, most=PRIORITY_MAX)
        as_of, records, protected = feed_caught_up_at(), read_records(), read_protected()
        profile = _known_profile(request, records)
        question = DrainQuestion(profile, count, most)
        answer = plan(records, question, protected)
        head = {
            "profile": profile,
            "count": count,
            "as_of": as_of,
            "possible": answer is not None,
            "free": free_now(records, profile),
            "protected": len(protected),
        }
        found = NO_PLAN if answer is None else document_of_plan(answer, self.visibility.sees)
        return Response(self.get_serializer({**head, **found}).data)


def _known_profile(request: Request, records: Mapping[str, NodeRecord]) -> str:
    name = request.query_params.get("profile", "")
    gpus = (gpu for record in records.values() for gpu in record.gpus)
    offered = {known for gpu in gpus for known in gpu.table.by_name}
    if name not in offered:
        raise InvalidParameter("profile", name, ", ".join(sorted(offered)))
    return name


def _check_nodes(names: Sequence[str], records: Mapping[str, NodeRecord]) -> None:
    wrong = [
        error_of(f"nodes[{number}]", name, "a node that publishes GPUs")
        for number, name in enumerate(names)
        if name not in records
    ]
    if wrong:
        raise InvalidBody(wrong)
