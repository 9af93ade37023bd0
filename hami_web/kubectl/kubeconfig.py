"""Which kubeconfig, and which namespace its context means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import yaml

from hami_web.kubectl.source import CommandFailed

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def kubeconfig_path(given: str, environment: Mapping[str, str]) -> Path | None:
    """The file kubectl would read; None inside a Pod without one."""
    if given:
        return Path(given)
    named = [Path(part) for part in environment.get("KUBECONFIG", "").split(":") if part]
    own = Path(environment.get("HOME", "/")) / ".kube" / "config"
    found = next((path for path in named if path.exists()), named[0] if named else own)
    return None if not found.exists() and SERVICE_ACCOUNT.exists() else found


def namespace_of(path: Path | None, context: str) -> str:
    """The namespace of a context, the current one by default; ``default`` where none is named."""
    if path is None or not path.is_file():
        return "default"
    try:
        document: object = yaml.load(path.read_text(), Loader=_LOADER)  # noqa: S506  # a safe one
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandFailed(f"{path}: {error}") from error
    if not isinstance(document, dict):
        return "default"
    config = cast(Mapping[str, object], document)
    wanted = context or config.get("current-context")
    contexts = config.get("contexts")
    for entry in contexts if isinstance(contexts, list) else ():
        if isinstance(entry, dict) and entry.get("name") == wanted:
            inner = entry.get("context")
            return str((inner or {}).get("namespace") or "default")
    return "default"


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
