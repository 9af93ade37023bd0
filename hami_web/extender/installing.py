"""What an installation needs before its roles start: Secrets that nobody gave, and a certificate.

Nothing that exists is replaced but a certificate that ends: a new signing key would make every
reservation in the cluster untrusted. Several of these may run at once; whoever creates first wins.
"""

from __future__ import annotations

import base64
import logging
import secrets
from dataclasses import dataclass
from typing import Final

from hami_web.cluster.secrets import SecretStore, trust_webhook
from hami_web.cluster.transport import Transport
from hami_web.extender.issuing import (
    Signed,
    make_authority,
    make_certificate,
    must_be_renewed,
    now,
)

logger = logging.getLogger(__name__)

WEBHOOK: Final = "hami-webhook"
WEBHOOK_ENTRY: Final = "vgpu.hami.io"
SIGNING_SECRET: Final = "hami-signing-keys"  # noqa: S105  # names of Secrets
DJANGO_SECRET: Final = "hami-secret-key"  # noqa: S105
ADMIN_SECRET: Final = "hami-admin"  # noqa: S105
AUTHORITY_SECRET: Final = "hami-ca"  # noqa: S105
TLS_SECRET: Final = "hami-extender-tls"  # noqa: S105


class SetupFailed(Exception):
    """Something that only a person can mend."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made."""

    signing_keys: bool = False
    secret_key: bool = False
    admin: bool = False
    certificate: bool = False
    webhook: bool = False


class Installer:
    """Makes what is missing in one namespace; raises ClusterError and SetupFailed."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport = transport
        self._namespace = namespace
        self._secrets = SecretStore(transport, namespace)

    def run(self, wanted: Wanted) -> None:
        """Make all that is wanted, in the order in which the roles need it."""
        if wanted.certificate:
            authority = self._certificate()
            if wanted.webhook:
                trust_webhook(self._transport, WEBHOOK, WEBHOOK_ENTRY, authority)
        if wanted.signing_keys:
            line = f"k1 {base64.b64encode(secrets.token_bytes(32)).decode()}\n"
            self._create(SIGNING_SECRET, "signing-keys", line)
        if wanted.secret_key:
            self._create(DJANGO_SECRET, "secret-key", secrets.token_urlsafe(48))
        if wanted.admin:
            self._create(ADMIN_SECRET, "password", secrets.token_urlsafe(18))

    def _create(self, name: str, key: str, value: str) -> None:
        made = self._secrets.create(name, {key: value.encode()})
        logger.info("Secret %s: %s", name, "made" if made else "exists already")

    def _certificate(self) -> bytes:
        """See that there is a certificate that lasts; return the CA."""
        authority = self._authority()
        names = (
            f"hami-extender.{self._namespace}.svc",
            f"hami-extender.{self._namespace}.svc.cluster.local",
            "localhost",
            "127.0.0.1",
        )
        present = self._secrets.read(TLS_SECRET)
        if present is not None and not must_be_renewed(
            present.get("tls.crt", b""), authority.certificate, names, now()
        ):
            logger.info("Secret %s: its certificate lasts", TLS_SECRET)
            return authority.certificate
        try:
            signed = make_certificate(authority, names, now())
        except ValueError as error:
            raise SetupFailed(f"Secret {AUTHORITY_SECRET}: {error}") from error
        files = {
            "tls.crt": signed.certificate,
            "tls.key": signed.key,
            "ca.crt": authority.certificate,
        }
        made = present is None and self._secrets.create(TLS_SECRET, files, "kubernetes.io/tls")
        if not made:
            self._secrets.replace(TLS_SECRET, files)
        logger.info("Secret %s: %s", TLS_SECRET, "made" if made else "renewed")
        return authority.certificate

    def _authority(self) -> Signed:
        present = self._secrets.read(AUTHORITY_SECRET)
        if present is None:
            made = make_authority(now())
            files = {"ca.crt": made.certificate, "ca.key": made.key}
            if self._secrets.create(AUTHORITY_SECRET, files):
                return made
            present = self._secrets.read(AUTHORITY_SECRET) or {}
        if not present.get("ca.crt") or not present.get("ca.key"):
            raise SetupFailed(
                f"Secret {AUTHORITY_SECRET}: ca.crt or ca.key is missing; delete the Secret and "
                "restart kube-scheduler afterwards, or give a certificate of your own"
            )
        return Signed(present["ca.crt"], present["ca.key"])
