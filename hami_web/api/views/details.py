"""Single objects."""

from __future__ import annotations

from hami_web.api.details import DetailView
from hami_web.api.serializers import details as shapes
from hami_web.api.views.alerts import Alerts
from hami_web.api.views.corrections import Drifts, Reconciliations
from hami_web.api.views.decisions import Decisions
from hami_web.api.views.inventory import Gpus, Nodes
from hami_web.api.views.reservations import Reservations


class NodeDetail(DetailView):
    """One node that the cluster has."""

    of, column = Nodes, "name"
    serializer_class = shapes.NodeDetailSerializer


class GpuDetail(DetailView):
    """One GPU that the cluster has."""

    of, column = Gpus, "uuid"
    serializer_class = shapes.GpuDetailSerializer


class ReservationDetail(DetailView):
    """One reservation, live or over."""

    of, column = Reservations, "id"
    serializer_class = shapes.ReservationDetailSerializer


class AlertDetail(DetailView):
    """One alert, open or resolved."""

    of, column = Alerts, "id"
    serializer_class = shapes.AlertDetailSerializer


class DecisionDetail(DetailView):
    """One decision of the extender."""

    of, column = Decisions, "id"
    serializer_class = shapes.DecisionDetailSerializer


class DriftDetail(DetailView):
    """One correction of the mirror."""

    of, column = Drifts, "id"
    serializer_class = shapes.DriftDetailSerializer


class ReconciliationDetail(DetailView):
    """One comparison of the mirror with the cluster."""

    of, column = Reconciliations, "id"
    serializer_class = shapes.ReconciliationDetailSerializer
