"""The pages of moving in: readiness of each node, a check's findings, the converter."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from hami_web.access.declared import needs
from hami_web.access.identity import caller_of, visibility_of
from hami_web.access.requests import actor_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import UNAVAILABLE
from hami_web.core.allowlist import render_allowlist
from hami_web.core.errors import InvalidField
from hami_web.core.geometries import convert
from hami_web.dashboard import downloads
from hami_web.dashboard.actions import not_done
from hami_web.dashboard.downloads import Sheet
from hami_web.dashboard.handover_page import may_lead, shown_handovers
from hami_web.dashboard.migration_wording import readiness_word, severity_word, state_of_run
from hami_web.dashboard.pages import missing, refused, respond
from hami_web.dashboard.seen import seen_map
from hami_web.migration.comparison import changes, current_profiles
from hami_web.migration.geometry_files import find_configurations
from hami_web.migration.models import (
    ENDED,
    Finding,
    MigrationRun,
    NodeReadiness,
    RunState,
)
from hami_web.migration.runs import CheckGoesOn, NotRunning
from hami_web.migration.severity import Severity
from hami_web.migration.wording import note_text
from hami_web.verbs.migration import cancel_check, start_check

logger = logging.getLogger(__name__)

RUNS_SHOWN: Final = 20
READINESS: Final = ("run", "node", "readiness", "blockers", "warnings", "checked_at")
FINDING: Final = ("run", "severity", "code", "node", "subject", "evidence")
TEXT_MAX: Final = 200_000
"""Characters of a configuration that is pasted; a device configuration has some thousand."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A check with its words."""

    row: MigrationRun

    @property
    def word(self) -> str:
        return state_of_run(self.row.state)

    @property
    def is_over(self) -> bool:
        return self.row.state in ENDED

    @property
    def percent(self) -> int:
        return round(100 * self.row.parts_done / self.row.parts) if self.row.parts else 0


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a check says of a node."""

    row: NodeReadiness
    blockers: int
    warnings: int

    @property
    def word(self) -> str:
        return readiness_word(self.row.readiness)


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding with its words; ``hides`` for callers who may not see every namespace."""

    row: Finding
    hides: bool

    @property
    def severity(self) -> str:
        return severity_word(self.row.severity)

    @property
    def subject(self) -> str:
        return gettext(UNAVAILABLE) if self.hides else self.row.subject

    @property
    def evidence(self) -> str:
        return gettext(UNAVAILABLE) if self.hides else self.row.evidence

    @property
    def mend(self) -> str:
        return gettext(UNAVAILABLE) if self.hides else self.row.mend


@needs(Verb.READ)
@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """The newest finished check in pictures, and the checks before it; 503 without a database."""
    current = seen_map(request)
    try:
        wanted = downloads.asked_format(request)
    except InvalidField as error:
        return refused(request, error, current)
    try:
        runs = list(MigrationRun.objects.all()[:RUNS_SHOWN])
        finished = MigrationRun.objects.filter(state=RunState.FINISHED, node="").first()
        nodes = _nodes(finished) if finished else []
        handovers = shown_handovers(RUNS_SHOWN)
    except DatabaseError as error:
        return _unreadable(request, "dashboard/migration.html", error)
    if wanted:
        return downloads.answer(_readiness_sheet(nodes), wanted, current.version if current else 0)
    context = {
        "downloads": downloads.links(request) if finished else (),
        "runs": [RunView(run) for run in runs],
        "open": next((RunView(run) for run in runs if run.state not in ENDED), None),
        "finished": finished,
        "nodes": nodes,
        "counts": Counter(node.row.readiness for node in nodes),
        "handovers": handovers,
        "may_lead": may_lead(request),
        "may_check": _may_check(request),
        "readable": True,
    }
    return respond(request, "dashboard/migration.html", context, current=current)


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """One check; its findings can be narrowed by ``node`` and ``severity``."""
    current = seen_map(request)
    severity, node = request.GET.get("severity", ""), request.GET.get("node", "")
    try:
        wanted = downloads.asked_format(request)
        _check_severity(severity)
    except InvalidField as error:
        return refused(request, error, current)
    try:
        run = MigrationRun.objects.filter(pk=pk).first()
        if run is None:
            return missing(request, gettext("such check"), current)
        nodes = _nodes(run)
        rows = Finding.objects.filter(run=run)
        rows = rows.filter(severity=severity) if severity else rows
        rows = rows.filter(node__in=("", node)) if node else rows
        hides = not visibility_of(request).everything
        found = [FindingView(row, hides) for row in rows]
    except DatabaseError as error:
        return _unreadable(request, "dashboard/migration_run.html", error)
    found.sort(key=lambda item: Severity.values.index(item.row.severity))
    if wanted:
        sheet = _findings_sheet(found)
        return downloads.answer(sheet, wanted, current.version if current else 0)
    context = {
        "downloads": downloads.links(request),
        "run": RunView(run),
        "nodes": nodes,
        "findings": found,
        "severity": severity,
        "severities": [(value, severity_word(value)) for value in Severity.values],
        "node": node,
        "may_check": _may_check(request),
        "readable": True,
    }
    return respond(request, "dashboard/migration_run.html", context, current=current)


@needs(Verb.CHECK)
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Ask for a check; leads to it, or to the one that goes on."""
    try:
        run = start_check(actor_of(request))
    except CheckGoesOn as error:
        run = error.run
    except DatabaseError as error:
        return not_done(request, str(error), 503)
    return redirect("dashboard:migration-run", pk=run.pk)


@needs(Verb.CHECK)
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Call a check off; 409 where it is over."""
    try:
        cancel_check(actor_of(request), pk)
    except MigrationRun.DoesNotExist:
        return missing(request, gettext("such check"), seen_map(request))
    except NotRunning as error:
        return not_done(request, str(error), 409)
    except DatabaseError as error:
        return not_done(request, str(error), 503)
    return redirect("dashboard:migration-run", pk=pk)


@needs(Verb.READ)
@require_http_methods(["GET", "HEAD", "POST"])
def converter(request: HttpRequest) -> HttpResponse:
    """Paste a configuration, get an allowlist; nothing is stored. 400 where it cannot be read."""
    text = request.POST.get("text", "")
    compared = request.POST.get("current", "")
    context: dict[str, Any] = {"text": text, "compared": compared}
    status = HTTPStatus.OK
    if text:
        try:
            context["made"] = _converted(text, compared)
        except InvalidField as error:
            context["error"], status = error, HTTPStatus.BAD_REQUEST
    current = seen_map(request)
    return respond(request, "dashboard/converter.html", context, current=current, status=status)


def _converted(text: str, current: str) -> list[dict[str, Any]]:
    for name, given in (("configuration", text), ("current", current)):
        if len(given) > TEXT_MAX:
            raise InvalidField(name, f"{len(given)} characters", f"at most {TEXT_MAX}")
    now = current_profiles(current) if current.strip() else None
    made = []
    for found in find_configurations(text):
        conversion = convert(found.document)
        notes = [(note.code.value, note.where, note_text(note)) for note in conversion.notes]
        made.append(
            {
                "where": found.where,
                "yaml": render_allowlist(conversion.entries),
                "notes": notes,
                "compared": now is not None,
                "changes": [] if now is None else list(changes(now, conversion)),
            }
        )
    return made


def _nodes(run: MigrationRun) -> list[NodeView]:
    """Two queries, whatever the number of nodes."""
    found = Counter(
        Finding.objects.filter(run=run).exclude(node="").values_list("node", "severity")
    )
    return [
        NodeView(row, found[row.node, Severity.BLOCKER], found[row.node, Severity.WARNING])
        for row in NodeReadiness.objects.filter(run=run)
    ]


def _check_severity(severity: str) -> None:
    if severity and severity not in Severity.values:
        raise InvalidField("severity", severity, ", ".join(Severity.values))


def _readiness_sheet(nodes: list[NodeView]) -> Sheet:
    rows = [
        (each.row.run_id, each.row.node, each.row.readiness, each.blockers, each.warnings,
         each.row.checked_at)
        for each in nodes
    ]  # fmt: skip
    return Sheet("migration", READINESS, rows)


def _findings_sheet(found: list[FindingView]) -> Sheet:
    """Hidden texts are hidden here too."""
    rows = [
        (each.row.run_id, each.row.severity, each.row.code, each.row.node, each.subject,
         each.evidence)
        for each in found
    ]  # fmt: skip
    return Sheet("migration-check", FINDING, rows)


def _may_check(request: HttpRequest) -> bool:
    caller = caller_of(request)
    return caller is not None and caller.may(Verb.CHECK)


def _unreadable(request: HttpRequest, template: str, error: DatabaseError) -> HttpResponse:
    logger.warning("checks cannot be read: %s", error)
    current = seen_map(request)
    status = HTTPStatus.SERVICE_UNAVAILABLE
    return respond(request, template, {"readable": False}, current=current, status=status)
