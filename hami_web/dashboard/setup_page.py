"""The setup page: green and red checks, each red one with what mends it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.errors import IdentityUnavailable
from hami_web.access.reviewer import reviewer
from hami_web.access.roles import Verb
from hami_web.cluster.reviews import Asked
from hami_web.dashboard import setup_checks
from hami_web.dashboard.installed import installed_map
from hami_web.dashboard.pages import respond
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.service_accounts import Answering, Questions
from hami_web.dashboard.setup_records import Check, CheckState, ReadinessLook, Recorded
from hami_web.history.models import Alert, Decision, Feed
from hami_web.history.vitals import extender_heard_at, vitals
from hami_web.migration.models import MigrationRun, RunState

logger = logging.getLogger(__name__)

LATELY: Final = timedelta(days=1)
"""How old a readiness check may be to be believed."""


@dataclass(frozen=True, slots=True)
class Group:
    """Checks about one part."""

    title: str
    checks: tuple[Check, ...]


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """All checks; 200 also where much is red, since that is what the page is for."""
    current = seen_map(request)
    freshness = installed_map().freshness()
    known = read_recorded()
    found = {
        check.code: check
        for check in (
            setup_checks.api_server(freshness),
            *setup_checks.rights(None if settings.KUBECONFIG else _asker(quiet=freshness.is_stale)),
            *setup_checks.nodes(current),
            *setup_checks.recorded(known),
            setup_checks.signing(known.alerts if known else None),
            *setup_checks.own_settings(request.get_host()),
        )
    }
    context = {
        "groups": _grouped(found),
        "good": setup_checks.count(found.values(), CheckState.GOOD),
        "bad": setup_checks.count(found.values(), CheckState.BAD),
        "unknown": setup_checks.count(found.values(), CheckState.UNKNOWN),
    }
    return respond(request, "dashboard/setup.html", context, current=current)


def read_recorded() -> Recorded | None:
    """What the mirror says, eleven queries; None where it cannot be read."""
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        unapplied = tuple(f"{migration.app_label}.{migration.name}" for migration, _ in plan)
        if unapplied:
            # Its tables may lack what the rest would read.
            return Recorded(datetime.now(UTC), None, (), None, None, frozenset(), unapplied)
        database_now = Feed.objects.values_list(Now(), flat=True).first()
        now = datetime.now(UTC)
        return Recorded(
            now,
            database_now,
            vitals(now, compare_every_s=settings.RECONCILE_SECONDS),
            extender_heard_at(),
            Decision.objects.values_list("last_at", flat=True).first(),
            frozenset(Alert.objects.filter(resolved_at=None).values_list("code", flat=True)),
            (),
            _readiness(now),
        )
    except DatabaseError as error:
        logger.warning("the setup page: the database cannot be read: %s", error)
        return None


def _readiness(now: datetime) -> ReadinessLook | None:
    """The newest readiness check that was finished lately, two queries."""
    runs = MigrationRun.objects.filter(
        state=RunState.FINISHED, node="", finished_at__gte=now - LATELY
    )
    run = runs.order_by("-finished_at").first()
    if run is None or run.finished_at is None:
        return None
    return ReadinessLook(run.finished_at, frozenset(run.findings.values_list("code", flat=True)))


def _asker(*, quiet: bool) -> Answering:
    """Asks the API server, unless that is known to be silent."""

    def ask(questions: Questions) -> Mapping[tuple[str, Asked], bool | None]:
        try:
            return dict.fromkeys(questions) if quiet else reviewer().rights(questions)
        except IdentityUnavailable:
            return dict.fromkeys(questions)

    return ask


def _grouped(found: Mapping[str, Check]) -> list[Group]:
    """The checks by part, in the order of the page."""
    parts = (
        (
            gettext("Cluster"),
            "api-server rights-extender rights-node-agent rights-worker rights-web",
        ),
        (gettext("Scheduling"), "extender scheduler webhook certificate signing"),
        (gettext("Nodes"), "nodes agents capability owner"),
        (gettext("Worker and database"), "database migrations feed queue comparison clocks"),
        (gettext("This dashboard"), "hosts cookies secret debug"),
    )
    return [
        Group(title, tuple(found[code] for code in codes.split() if code in found))
        for title, codes in parts
    ]
