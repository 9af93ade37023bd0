"""What would happen: where Pods would go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.access.roles import Verb
from hami_web.api.bodies import read_body
from hami_web.api.codes import IMPOSSIBLE
from hami_web.api.governed import Governed
from hami_web.api.parameters import check_known
from hami_web.api.problems import InvalidBody, Problem, error_of
from hami_web.api.serializers import whatif as shapes
from hami_web.api.whatif import document_of, question_of
from hami_web.core.errors import InvalidRequest
from hami_web.core.policy import parse_scheduling_policy
from hami_web.history.drift import feed_caught_up_at
from hami_web.planning.records import read_records
from hami_web.planning.whatif import ask
from hami_web.scheduling.records import NodeRecord


class WhatIf(Governed, GenericAPIView[Any]):
    """Where Pods that do not exist yet would go, by the extender's own rules; changes nothing."""

    verb = Verb.WHAT_IF
    serializer_class = shapes.WhatIfAnswerSerializer

    @extend_schema(
        request=shapes.WhatIfBody, responses={200: shapes.WhatIfAnswerSerializer}, filters=False
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


def _check_nodes(names: Sequence[str], records: Mapping[str, NodeRecord]) -> None:
    wrong = [
        error_of(f"nodes[{number}]", name, "a node that publishes GPUs")
        for number, name in enumerate(names)
        if name not in records
    ]
    if wrong:
        raise InvalidBody(wrong)
