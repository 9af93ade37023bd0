"""Start, follow and cancel readiness checks."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.access.roles import Verb
from hami_web.api.bodies import read_body
from hami_web.api.codes import CONFLICT
from hami_web.api.details import DetailView
from hami_web.api.parameters import check_known
from hami_web.api.problems import Problem
from hami_web.api.serializers import migration as shapes
from hami_web.api.serializers.verbs import EmptyBody, StartCheckBody
from hami_web.api.views.migration import MigrationRuns
from hami_web.migration.runs import CheckGoesOn, NotRunning
from hami_web.verbs.migration import cancel_check, start_check

NOTHING = OpenApiExample("nothing is asked", {}, request_only=True)


class MigrationRunDetail(DetailView):
    """One check: how far it is, and how it ended."""

    of, column = MigrationRuns, "id"
    serializer_class = shapes.MigrationRunSerializer


class StartCheck(MigrationRunDetail):
    """Ask the worker to look at the cluster; nothing in it is changed."""

    http_method_names = ["post", "options"]
    verb = Verb.CHECK

    @extend_schema(
        operation_id="migration_check_start",
        request=StartCheckBody,
        examples=[NOTHING],
        responses={202: shapes.MigrationRunSerializer},
        filters=False,
    )
    def post(self, request: Request) -> Response:
        """The new check. 409 with the one that goes on, where there is one."""
        check_known(request, ("format",))
        asked = read_body(StartCheckBody, request)
        try:
            run = start_check(self.actor, asked["node"])
        except CheckGoesOn as error:
            current = self.document(error.run)
            raise Problem(CONFLICT, str(error), current=current) from error
        document = self.document(run)
        address = request.path.removesuffix("start") + str(run.pk)
        return Response(document, status=202, headers={"Location": address})


class CancelCheck(MigrationRunDetail):
    """Call a check off; what it saw so far is not kept."""

    http_method_names = ["post", "options"]
    verb = Verb.CHECK

    @extend_schema(
        operation_id="migration_check_cancel",
        request=EmptyBody,
        examples=[NOTHING],
        responses=shapes.MigrationRunSerializer,
        filters=False,
    )
    def post(self, request: Request, pk: int) -> Response:
        """The check as it is then. 409 where it is over."""
        check_known(request, ("format",))
        read_body(EmptyBody, request)
        row = self.row(pk=pk)
        try:
            return Response(self.document(cancel_check(self.actor, row.pk)))
        except NotRunning as error:
            raise Problem(CONFLICT, str(error), current=self.document(row)) from error
