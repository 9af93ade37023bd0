"""Shapes of single objects: those of the lists, with links to what belongs to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from django.urls import get_script_prefix
from rest_framework import serializers

from hami_web.api.serializers.history import (
    AlertSerializer,
    DecisionSerializer,
    DriftSerializer,
    ReconciliationSerializer,
)
from hami_web.api.serializers.inventory import GpuSerializer, NodeSerializer
from hami_web.api.serializers.reservations import ReservationSerializer
from hami_web.history.models import Alert, Decision, Drift, Reconciliation
from hami_web.inventory.models import Node
from hami_web.reservations.models import MigReservation

ROOT = "api/v1/"
Links = dict[str, str]

if TYPE_CHECKING:
    _Base = serializers.Serializer[Any]
else:
    _Base = object


def address(*parts: object, **query: object) -> str:
    """An address of this API, as browsers and scripts reach it on this host."""
    path = get_script_prefix() + ROOT + "/".join(quote(str(part), safe="") for part in parts)
    return f"{path}?{urlencode(query)}" if query else path


class Linked(_Base):
    """Put before a serializer: adds ``links``, which ``get_links`` makes."""

    def get_fields(self) -> dict[str, Any]:
        """Those of the list, and the links."""
        return {**super().get_fields(), "links": serializers.SerializerMethodField()}


class NodeDetailSerializer(Linked, NodeSerializer):
    """A node with links."""

    def get_links(self, row: Node) -> Links:
        """Its GPUs, reservations and samples."""
        return {
            "gpus": address("gpus", node=row.name),
            "reservations": address("reservations", node=row.name, live="true"),
            "samples": address("samples", node=row.name),
        }


class GpuDetailSerializer(Linked, GpuSerializer):
    """A GPU with links."""

    def get_links(self, row: Any) -> Links:
        """Its node, its map, its reservations, and what can be done."""
        return {
            "node": address("nodes", row.node_name),
            "map": address("gpus", row.uuid, "map"),
            "drawing": address("gpus", row.uuid, "map.svg"),
            "reservations": address("reservations", gpu_uuid=row.uuid, live="true"),
            "cordon": address("gpus", row.uuid, "cordon"),
            "uncordon": address("gpus", row.uuid, "uncordon"),
        }


class ReservationDetailSerializer(Linked, ReservationSerializer):
    """A reservation with links."""

    def get_links(self, row: MigReservation) -> Links:
        """Its node and GPU, the Pod's other reservations, and why the Pod waited."""
        return {
            "node": address("nodes", row.node),
            "gpu": address("gpus", row.gpu_uuid),
            "pod": address("reservations", pod_uid=row.pod_uid),
            "why": address("pods", row.namespace, row.pod, "why"),
        }


class AlertDetailSerializer(Linked, AlertSerializer):
    """An alert with links."""

    def get_links(self, row: Alert) -> Links:
        """How to acknowledge it."""
        return {"acknowledge": address("alerts", row.pk, "acknowledge")}


class DecisionDetailSerializer(Linked, DecisionSerializer):
    """A decision with links."""

    def get_links(self, row: Decision) -> Links:
        """All that was said of the Pod."""
        return {"why": address("pods", row.namespace, row.pod, "why")}


class DriftDetailSerializer(Linked, DriftSerializer):
    """A correction with links."""

    def get_links(self, row: Drift) -> Links:
        """The comparison that made it."""
        return {"reconciliation": address("reconciliations", row.reconciliation_id)}


class ReconciliationDetailSerializer(Linked, ReconciliationSerializer):
    """A comparison with links."""

    def get_links(self, row: Reconciliation) -> Links:
        """Its corrections."""
        return {"drift": address("drift", reconciliation=row.pk)}
