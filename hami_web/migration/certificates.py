"""Until when the API server can trust the extender: the authority, and what is served."""

from __future__ import annotations

import base64
import ssl
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509

from hami_web.cluster.errors import ClusterError

TIMEOUT_S: Final = 5.0


def end_of_bundle(bundle: str) -> datetime | None:
    """When the last certificate of a ``caBundle`` ends; None where none can be read."""
    try:
        found = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except ValueError:
        return None
    return max((item.not_valid_after_utc for item in found), default=None)


def end_of_served(url: str) -> datetime | None:
    """When the certificate that is served there ends, whoever signed it; None without TLS.

    Raises ClusterError when nobody answers.
    """
    address = urlsplit(url)
    if address.scheme != "https" or address.hostname is None:
        return None
    try:
        text = ssl.get_server_certificate(
            (address.hostname, address.port or 443), timeout=TIMEOUT_S
        )
        return x509.load_pem_x509_certificate(text.encode()).not_valid_after_utc
    except (OSError, ValueError) as error:
        raise ClusterError(f"certificate of {url}: {error}", 0) from error
