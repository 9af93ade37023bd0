"""System checks of the settings, numbered ``hami.E…`` and ``hami.W…``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning

from hami_web.core.errors import CoreError
from hami_web.core.policy import parse_scheduling_policy
from hami_web.core.signature import InvalidSigningKey, KeyFile
from hami_web.extender.serving import UnusablePair, load_pair
from hami_web.scheduling.admission_policy import parse_admission_policy
from hami_web.startup import OWN_CHECKS

HTTP_TIMEOUT_S = 30
"""kube-scheduler's usual ``httpTimeout`` for an extender, in seconds."""


@register(OWN_CHECKS)
def check_scheduling_policy(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.E001: the policy file's sections for the extender must be readable."""
    try:
        parse_scheduling_policy(settings.SCHEDULING_POLICY)
        parse_admission_policy(settings.ADMISSION_POLICY)
    except CoreError as error:
        return [Error(f"HAMI_POLICY_FILE: {error}", hint="See HAMI_POLICY_FILE.", id="hami.E001")]
    return []


@register(OWN_CHECKS)
def check_tls_files(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.E002: certificate and key come together, can be read, and belong together."""
    certificate, key = settings.EXTENDER_TLS_CERT, settings.EXTENDER_TLS_KEY
    if certificate is None and key is None:
        return []
    text = "both must name existing files"
    if certificate is not None and key is not None:
        try:
            load_pair(certificate, key)
        except UnusablePair as error:
            text = str(error)
        else:
            return []
    return [Error(f"HAMI_EXTENDER_TLS_CERT, HAMI_EXTENDER_TLS_KEY: {text}", id="hami.E002")]


@register(OWN_CHECKS)
def check_signing_keys(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.E003: a key file that is named must be readable and hold keys."""
    if settings.SIGNING_KEYS is None:
        return []
    try:
        KeyFile(settings.SIGNING_KEYS)
    except InvalidSigningKey as error:
        return [Error(f"HAMI_SIGNING_KEYS: {error}", hint="See HAMI_SIGNING_KEYS.", id="hami.E003")]
    return []


@register(OWN_CHECKS)
def check_bind_wait(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.W001: a bind must end before the scheduler gives up on it."""
    if settings.BIND_WAIT_S < HTTP_TIMEOUT_S - 5:
        return []
    text = f"HAMI_BIND_WAIT_S: {settings.BIND_WAIT_S:g} s leaves no time for the writes of a bind"
    hint = f"kube-scheduler's httpTimeout is {HTTP_TIMEOUT_S} s unless its configuration differs."
    return [CheckWarning(text, hint=hint, id="hami.W001")]


@register(Tags.security, deploy=True)
def check_lasting_secret(app_configs: Any = None, **_options: Any) -> Sequence[CheckMessage]:  # noqa: ARG001
    """hami.W002: sessions signed with a secret of one process end with it."""
    if settings.SECRET_KEY_IS_LASTING:
        return []
    text = "HAMI_SECRET_KEY is not set: a random one is used until this process ends"
    return [CheckWarning(text, hint="The extender needs none; the web role does.", id="hami.W002")]
