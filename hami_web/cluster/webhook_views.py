"""The parts of a webhook configuration that tell how the API server reaches and trusts us."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hami_web.cluster.views import ObjectMeta


class ServiceReference(Struct, gc=False):
    """A Service by namespace and name."""

    name: str = ""
    namespace: str = ""


class WebhookClient(Struct, rename="camel", gc=False):
    """How the API server reaches a webhook, and whom it trusts there (base64 of PEM)."""

    ca_bundle: str | None = None
    url: str | None = None
    service: ServiceReference | None = None

    @property
    def server_name(self) -> str:
        """The name that the certificate must have."""
        if self.service is not None:
            return f"{self.service.name}.{self.service.namespace}.svc"
        return urlsplit(self.url or "").hostname or ""


class WebhookEntry(Struct, rename="camel", gc=False):
    """One webhook of a configuration."""

    client_config: WebhookClient = msgspec.field(default_factory=WebhookClient)


class WebhookView(Struct, gc=False):
    """A MutatingWebhookConfiguration."""

    metadata: ObjectMeta
    webhooks: list[WebhookEntry] | None = None
