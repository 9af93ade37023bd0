"""Whether the API server trusts the certificate that the webhook is served with.

With failure policy Ignore a CA bundle of another key is silent: every GPU Pod passes unchanged. So
the bundle of our own configuration is read now and then, and tried on the serving certificate.
"""

from __future__ import annotations

import base64
import binascii
import logging
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hami_web.cluster.errors import ClusterError
from hami_web.cluster.webhook_views import WebhookView

logger = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 60.0


def mistrust(certificate: Path, key: Path, bundle: bytes, name: str) -> str | None:
    """Why a client with this CA bundle does not trust the certificate for ``name``, or None.

    A TLS handshake in memory, as the API server would make it.
    """
    try:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(certificate, key)
        client = ssl.create_default_context(cadata=bundle.decode())
    except (OSError, ValueError) as error:
        return f"the certificate or the CA bundle cannot be read: {error}"
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(8):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                return str(error)
    return None


class TrustWatch:
    """Looks at the bundles once a minute; ``problem`` is None while all of them trust us."""

    def __init__(
        self,
        webhook: Callable[[], WebhookView],
        certificate: Path,
        key: Path,
    ) -> None:
        self.problem: str | None = None
        self._webhook = webhook
        self._certificate = certificate
        self._key = key
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook-trust", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def look(self) -> None:
        """Read the configuration and try its bundles; what cannot be read changes nothing."""
        try:
            view = self._webhook()
        except ClusterError as error:
            logger.info("webhook: its configuration cannot be read: %s", error)
            return
        problems = [
            found
            for name, bundle in _bundles(view)
            if (found := mistrust(self._certificate, self._key, bundle, name)) is not None
        ]
        problem = "; ".join(problems) or None
        if problem != self.problem:
            if problem is not None:
                logger.error("webhook: the API server does not trust our certificate: %s", problem)
            self.problem = problem

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except Exception:
                logger.exception("webhook: looking at the CA bundle")
            if self._stopped.wait(LOOK_EVERY_S):
                return


def _bundles(view: WebhookView) -> Sequence[tuple[str, bytes]]:
    """Server name and CA bundle of each webhook; one without a bundle uses the system's CAs."""
    found = []
    for webhook in view.webhooks or ():
        config = webhook.client_config
        with suppress(binascii.Error):
            bundle = base64.b64decode(config.ca_bundle or "", validate=True)
            if bundle and config.server_name:
                found.append((config.server_name, bundle))
    return found
