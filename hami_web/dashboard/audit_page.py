"""The page of the audit log: who did what, for admins."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Final

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.models import AuditEntry
from hami_web.access.roles import Verb
from hami_web.core.errors import InvalidField
from hami_web.dashboard import columns, downloads
from hami_web.dashboard.pages import refused, respond
from hami_web.dashboard.parameters import parse_text
from hami_web.dashboard.seen import seen_map
from hami_web.dashboard.sheets import audit_sheet

logger = logging.getLogger(__name__)

SHOWN_MAX: Final = 200
TEXT_MAX: Final = 150


@needs(Verb.READ_AUDIT)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The newest entries, of one ``actor`` or ``verb`` where asked; 503 without a database."""
    current = seen_map(request)
    try:
        wanted = downloads.asked_format(request)
        chosen = columns.asked_columns(request, columns.AUDIT)
        actor, verb = (
            parse_text(name, request.GET.get(name, ""), TEXT_MAX) for name in ("actor", "verb")
        )
    except InvalidField as error:
        return refused(request, error, current)
    rows = AuditEntry.objects.order_by("-at", "-pk")
    if actor:
        rows = rows.filter(actor=actor)
    if verb:
        rows = rows.filter(verb=verb)
    context: dict[str, object] = {"actor": actor, "verb": verb, "columns": chosen}
    try:
        found = list(rows[: SHOWN_MAX + 1])
    except DatabaseError as error:
        logger.warning("the audit log cannot be read: %s", error)
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return respond(request, "dashboard/audit.html", context, current=current, status=status)
    if wanted:
        version = current.version if current else 0
        return downloads.answer(audit_sheet(found[:SHOWN_MAX]), wanted, version)
    context |= {
        "downloads": downloads.links(request),
        "readable": True,
        "entries": found[:SHOWN_MAX],
        "more": len(found) > SHOWN_MAX,
    }
    return respond(request, "dashboard/audit.html", context, current=current)
