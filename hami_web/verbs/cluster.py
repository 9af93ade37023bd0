"""The API server as this process reaches it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.transport import Transport

USER_AGENT: Final = "hami-web/verbs"


def nodes() -> KubernetesClient:
    """The client of the kubeconfig of the settings. Raises ClusterError where it is no good."""
    return _client(settings.KUBECONFIG)


@lru_cache(maxsize=4)
def _client(kubeconfig: Path | None) -> KubernetesClient:
    return KubernetesClient(Transport(OfficialConnection(kubeconfig), user_agent=USER_AGENT))
