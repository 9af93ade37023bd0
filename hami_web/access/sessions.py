"""Begin and end the session of a browser, and write it down."""

from __future__ import annotations

import base64
import binascii
import json
import time

from django.conf import settings
from django.contrib import auth
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from hami_web.access.audit import Action, record
from hami_web.access.caller import KubernetesUser
from hami_web.access.identity import KUBERNETES_SESSION
from hami_web.access.models import Outcome, User
from hami_web.access.people import caller_of_kubernetes, caller_of_user
from hami_web.access.requests import actor_of

SIGN_IN = "sign-in"
SIGN_OUT = "sign-out"


def begin_user_session(request: HttpRequest, user: User) -> None:
    """Of a local person or one of the OIDC provider."""
    auth.login(request, user)
    # Django keeps the key where the same person signs in again.
    request.session.cycle_key()
    record(actor_of(request, caller_of_user(user)), Action(SIGN_IN, user.source, user.username))


def begin_kubernetes_session(request: HttpRequest, user: KubernetesUser, token: str) -> None:
    """Of someone whom the API server named. The token is not kept: the session is, no longer than
    the token is valid, and what it gives is decided anew each time."""
    request.session.flush()
    request.session[KUBERNETES_SESSION] = {
        "name": user.name,
        "groups": list(user.groups),
        "uid": user.uid,
    }
    left_s = _valid_until(token) - time.time()
    request.session.set_expiry(max(1, int(min(settings.SESSION_COOKIE_AGE, left_s))))
    actor = actor_of(request, caller_of_kubernetes(user))
    record(actor, Action(SIGN_IN, "kubernetes", user.name))


def refuse_sign_in(request: HttpRequest, source: str, name: str, detail: str = "") -> None:
    """Write down that someone was not let in; ``name`` is what they claimed."""
    actor = actor_of(request)
    record(actor, Action(SIGN_IN, source, name), outcome=Outcome.REFUSED, detail=detail)


def end_session(request: HttpRequest) -> None:
    """End it on the server, so that its cookie opens nothing any more."""
    actor = actor_of(request)
    auth.logout(request)
    record(actor, Action(SIGN_OUT, actor.source, actor.name))


def prune_sessions() -> int:
    """Delete sessions that are over; returns how many."""
    return Session.objects.filter(expire_date__lt=timezone.now()).delete()[0]


def _valid_until(token: str) -> float:
    """The ``exp`` of a token that the API server accepted; never, where it has none."""
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return float("inf")
