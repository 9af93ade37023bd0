"""What people do on pages: forms that change something and lead back to their page."""

from __future__ import annotations

import logging

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from hami_web.access.declared import needs
from hami_web.access.identity import visibility_of
from hami_web.access.requests import actor_of
from hami_web.access.roles import Verb
from hami_web.cluster.errors import ClusterError
from hami_web.dashboard.pages import missing
from hami_web.dashboard.seen import seen_map
from hami_web.history.alerts import AlertNotOpen
from hami_web.history.models import Alert
from hami_web.scheduling.cordon import NotPublished
from hami_web.verbs.alerts import acknowledge_alert
from hami_web.verbs.gpus import cordon_gpu

logger = logging.getLogger(__name__)

NOTE_MAX = 500


@needs(Verb.CORDON)
@require_POST
def cordon(request: HttpRequest, uuid: str) -> HttpResponse:
    """Take a GPU out of service for new work."""
    return _cordon(request, uuid, cordoned=True)


@needs(Verb.CORDON)
@require_POST
def uncordon(request: HttpRequest, uuid: str) -> HttpResponse:
    """Offer a GPU for new work again."""
    return _cordon(request, uuid, cordoned=False)


@needs(Verb.ACKNOWLEDGE)
@require_POST
def acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    """Say that one knows of an alert; 409 where another was first."""
    try:
        rows = visibility_of(request).restrict(Alert.objects.all(), "namespace")
        alert = rows.filter(pk=pk).first()
        if alert is None:
            return missing(request, gettext("such alert"), seen_map(request))
        acknowledge_alert(actor_of(request), alert, _note(request))
    except AlertNotOpen as error:
        return not_done(request, str(error), 409)
    except DatabaseError as error:
        return not_done(request, str(error), 503)
    return redirect(f"{reverse('dashboard:alerts')}#alert-{pk}")


def _cordon(request: HttpRequest, uuid: str, *, cordoned: bool) -> HttpResponse:
    current = seen_map(request)
    row = current.rows.get(uuid) if current else None
    if row is None:
        return missing(request, f"GPU {uuid}", current)
    try:
        cordon_gpu(actor_of(request), row.node, uuid, cordoned=cordoned, reason=_note(request))
    except (NotPublished, ClusterError) as error:
        return not_done(request, str(error), 409)
    except DatabaseError as error:
        return not_done(request, str(error), 503)
    return redirect("dashboard:gpu-page", uuid=uuid)


def _note(request: HttpRequest) -> str:
    return request.POST.get("note", "").replace("\0", "")[:NOTE_MAX]


def not_done(request: HttpRequest, text: str, status: int) -> HttpResponse:
    """What was asked for did not happen, or it is not known whether it did; nothing is repeated."""
    logger.warning("%s %s: %s", request.method, request.path, text)
    return render(request, "dashboard/not_done.html", {"text": text}, status=status)
