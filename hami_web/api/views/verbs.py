"""What changes something: cordon and uncordon a GPU, acknowledge an alert."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from hami_web.access.roles import Verb
from hami_web.api.bodies import read_body
from hami_web.api.codes import CONFLICT, RACE
from hami_web.api.described import A_NAME, parameter
from hami_web.api.etags import check_match, etag_of
from hami_web.api.parameters import check_known
from hami_web.api.problems import Problem
from hami_web.api.serializers import verbs as shapes
from hami_web.api.serializers.details import AlertDetailSerializer
from hami_web.api.views.details import AlertDetail, GpuDetail
from hami_web.cluster.errors import Conflict, NotFound
from hami_web.history.alerts import AlertNotOpen
from hami_web.scheduling.cordon import NotPublished
from hami_web.verbs.alerts import acknowledge_alert
from hami_web.verbs.gpus import cordon_gpu

IF_MATCH = parameter(
    "If-Match",
    A_NAME,
    "an ETag of the object: 412 where it is in another state by now",
    '"0b6f2d1c9a8e4f5d6c7b8a9f0e1d2c3b"',
    header=True,
)
CORDON_EXAMPLE = OpenApiExample("with a reason", {"reason": "the fan is loud"}, request_only=True)
NOTE_EXAMPLE = OpenApiExample("with a note", {"note": "on it"}, request_only=True)


class _CordonVerb(GpuDetail):
    """Both verbs; idempotent."""

    http_method_names = ["post", "options"]
    verb = Verb.CORDON
    cordoned: bool

    def change(self, request: Request, uuid: str) -> Response:
        """Write the node's annotation, with the caller recorded before and after."""
        check_known(request, ("format",))
        reason = read_body(shapes.CordonBody, request)["reason"]
        document = self.document(self.row(uuid=uuid))
        check_match(request, document)
        node = str(document["node"])
        try:
            changed = cordon_gpu(self.actor, node, uuid, cordoned=self.cordoned, reason=reason)
        except (NotPublished, NotFound) as error:
            raise Problem(CONFLICT, str(error), current=document) from error
        except Conflict as error:
            raise Problem(RACE, str(error), current=document) from error
        answer = {"uuid": uuid, "node": node, "cordoned": self.cordoned, "changed": changed}
        return Response(shapes.CordonSerializer(answer).data)


class CordonGpu(_CordonVerb):
    """Take a GPU out of service for new work; what runs on it goes on."""

    cordoned = True

    @extend_schema(
        operation_id="gpu_cordon",
        request=shapes.CordonBody,
        examples=[CORDON_EXAMPLE],
        responses=shapes.CordonSerializer,
        parameters=[IF_MATCH],
        filters=False,
    )
    def post(self, request: Request, uuid: str) -> Response:
        """Add the GPU to its node's ``hami.io/device-cordon``."""
        return self.change(request, uuid)


class UncordonGpu(_CordonVerb):
    """Offer a GPU for new work again."""

    cordoned = False

    @extend_schema(
        operation_id="gpu_uncordon",
        request=shapes.CordonBody,
        examples=[CORDON_EXAMPLE],
        responses=shapes.CordonSerializer,
        parameters=[IF_MATCH],
        filters=False,
    )
    def post(self, request: Request, uuid: str) -> Response:
        """Take the GPU off its node's ``hami.io/device-cordon``."""
        return self.change(request, uuid)


class AcknowledgeAlert(AlertDetail):
    """Say that one knows of an alert; it stays known until its condition was over."""

    http_method_names = ["post", "options"]
    verb = Verb.ACKNOWLEDGE

    @extend_schema(
        operation_id="alert_acknowledge",
        request=shapes.AcknowledgeBody,
        examples=[NOTE_EXAMPLE],
        responses=AlertDetailSerializer,
        parameters=[IF_MATCH],
        filters=False,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Store who knows of it, and their note. The same caller may say it again."""
        check_known(request, ("format",))
        note = read_body(shapes.AcknowledgeBody, request)["note"]
        row = self.row(pk=pk)
        check_match(request, self.document(row))
        try:
            acknowledge_alert(self.actor, row, note)
        except AlertNotOpen as error:
            raise Problem(CONFLICT, str(error), current=self.document(error.alert)) from error
        document = self.document(self.row(pk=pk))
        return Response(document, headers={"ETag": etag_of(document)})
