"""Words for what keeps a role from its work at the start or later, one table for every role.

A role says such a fault in one line, ``<word>: <what, where, what is allowed>``, and answers the
same text at ``/readyz`` until the cause is gone.
"""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """What is not as a role needs it. The value is the stable code."""

    SETTING = "SettingInvalid"
    SECRET = "SecretUnreadable"  # noqa: S105  # a word for people
    POLICY = "PolicyInvalid"
    CERTIFICATE = "CertificateUnusable"
    SIGNING_KEYS = "SigningKeysUnusable"
    KUBERNETES_CONFIG = "KubernetesConfigInvalid"
    API_SERVER = "ApiServerUnavailable"
    API_SERVER_FORBIDS = "ApiServerForbids"
    DATABASE = "DatabaseUnavailable"
    SCHEMA = "DatabaseSchemaOld"
    VOLUME = "VolumeNotWritable"
    QUEUE = "QueueUnavailable"
    ADDRESS = "AddressUnusable"


def line(fault: Fault, text: object) -> str:
    """The fault as one line, whatever line breaks a foreign text has."""
    return f"{fault}: {' '.join(str(text).split())}"
