"""Addresses of the dashboard."""

from django.urls import path

from hami_web.dashboard import (
    actions,
    alert_page,
    audit_page,
    drain_page,
    fragmentation_page,
    gpu_page,
    history_page,
    migration_page,
    namespace_page,
    node_page,
    pod_page,
    setup_page,
    views,
    what_if_page,
)

app_name = "dashboard"
urlpatterns = [
    path("", views.page, name="page"),
    path("fragmentation", fragmentation_page.page, name="fragmentation"),
    path("what-if", what_if_page.page, name="what-if"),
    path("drain-plan", drain_page.page, name="drain"),
    path("history", history_page.page, name="history"),
    path("alerts", alert_page.alerts, name="alerts"),
    path("drift", alert_page.drift, name="drift"),
    path("audit", audit_page.page, name="audit"),
    path("setup", setup_page.page, name="setup"),
    path("migration", migration_page.listing, name="migration"),
    path("migration/start", migration_page.start, name="migration-start"),
    path("migration/converter", migration_page.converter, name="migration-converter"),
    path("migration/<int:pk>", migration_page.page, name="migration-run"),
    path("migration/<int:pk>/cancel", migration_page.cancel, name="migration-cancel"),
    path("namespaces", namespace_page.listing, name="namespaces"),
    path("namespaces/<str:namespace>", namespace_page.page, name="namespace-page"),
    path("nodes/<str:name>", node_page.page, name="node-page"),
    path("gpus/<str:uuid>", gpu_page.page, name="gpu-page"),
    path("pods/<str:namespace>/<str:name>", pod_page.page, name="pod-page"),
    path("gpus/<str:uuid>/cordon", actions.cordon, name="cordon"),
    path("gpus/<str:uuid>/uncordon", actions.uncordon, name="uncordon"),
    path("alerts/<int:pk>/acknowledge", actions.acknowledge, name="acknowledge"),
    path("fragments/summary", views.summary, name="summary"),
    path("fragments/gpus/<str:uuid>", views.gpu, name="gpu"),
    path("events", views.events, name="events"),
]
