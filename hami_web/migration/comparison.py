"""What a converted allowlist changes of the one that there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import yaml

from hami_web.core.allowlist import AllowlistEntry, parse_allowlist
from hami_web.core.errors import InvalidPolicy
from hami_web.core.geometries import Conversion, difference

Profiles = Mapping[str, frozenset[str]]
"""Permitted profiles by model."""


def current_profiles(text: str) -> Profiles:
    """The allowlist of a device configuration.

    Raises InvalidPolicy for a text that is none, naming the field.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidPolicy("current", str(error), "YAML or JSON") from error
    section = document.get("nvidia") if isinstance(document, dict) else None
    listed = section.get("migProfileAllowlist") if isinstance(section, dict) else None
    return _by_model(parse_allowlist(listed).entries)


def changes(current: Profiles, conversion: Conversion) -> Iterator[str]:
    """A line for each model that is other than now: ``+`` what is added, ``-`` what is left out."""
    for model, (added, left) in difference(current, _by_model(conversion.entries)).items():
        signs = [f"+{name}" for name in sorted(added)] + [f"-{name}" for name in sorted(left)]
        yield f"{model}: {' '.join(signs)}"


def _by_model(entries: Iterable[AllowlistEntry]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for entry in entries:
        for model in entry.models:
            found[model] = found.get(model, frozenset()) | frozenset(entry.profiles)
    return found
