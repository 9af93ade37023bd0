"""Addresses below ``/api/``."""

from django.urls import path, re_path
from drf_spectacular.views import SpectacularAPIView

from hami_web.access.declared import public
from hami_web.api.documents import SwaggerPage
from hami_web.api.views import (
    alerts,
    audit,
    changes,
    corrections,
    decisions,
    details,
    inventory,
    maps,
    measures,
    migration,
    planning,
    reservations,
    unknown,
    usage,
    verbs,
    worker,
)

urlpatterns = [
    path("schema/", public(SpectacularAPIView.as_view()), name="schema"),
    path("docs/", public(SwaggerPage.as_view(url_name="schema")), name="docs"),
    path("v1/nodes", inventory.Nodes.as_view()),
    path("v1/nodes/<str:name>", details.NodeDetail.as_view()),
    path("v1/gpus", inventory.Gpus.as_view()),
    path("v1/gpus/<str:uuid>", details.GpuDetail.as_view()),
    path("v1/gpus/<str:uuid>/cordon", verbs.CordonGpu.as_view()),
    path("v1/gpus/<str:uuid>/uncordon", verbs.UncordonGpu.as_view()),
    path("v1/map", maps.ClusterMap.as_view()),
    path("v1/gpus/<str:uuid>/map", maps.GpuMap.as_view()),
    path("v1/gpus/<str:uuid>/map.svg", maps.GpuDrawing.as_view()),
    path("v1/profiles", inventory.Profiles.as_view()),
    path("v1/reservations", reservations.Reservations.as_view()),
    path("v1/reservations/<int:pk>", details.ReservationDetail.as_view()),
    path("v1/decisions", decisions.Decisions.as_view()),
    path("v1/decisions/<int:pk>", details.DecisionDetail.as_view()),
    path("v1/pods/<str:namespace>/<str:pod>/why", decisions.Why.as_view()),
    path("v1/fragmentation", measures.FragmentationNow.as_view()),
    path("v1/what-if", planning.WhatIf.as_view()),
    path("v1/drain-plan", planning.DrainPlan.as_view()),
    path("v1/migration-runs", migration.MigrationRuns.as_view()),
    path("v1/migration-runs/<int:run>/nodes", migration.RunNodes.as_view()),
    path("v1/migration-runs/<int:run>/findings", migration.RunFindings.as_view()),
    path("v1/changes", changes.Changes.as_view()),
    path("v1/usage", usage.UsageHours.as_view()),
    path("v1/worker", worker.Worker.as_view()),
    path("v1/alerts", alerts.Alerts.as_view()),
    path("v1/alerts/<int:pk>", details.AlertDetail.as_view()),
    path("v1/alerts/<int:pk>/acknowledge", verbs.AcknowledgeAlert.as_view()),
    path("v1/drift/<int:pk>", details.DriftDetail.as_view()),
    path("v1/reconciliations/<int:pk>", details.ReconciliationDetail.as_view()),
    path("v1/drift", corrections.Drifts.as_view()),
    path("v1/reconciliations", corrections.Reconciliations.as_view()),
    path("v1/samples", measures.Samples.as_view()),
    path("v1/audit", audit.Audit.as_view()),
    re_path(r"^v1/(?P<rest>[\s\S]*)$", unknown.Unknown.as_view()),
]
