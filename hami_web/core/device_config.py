"""The device configuration: the file from which agents take the allowlist."""

from __future__ import annotations

from hami_web.core.allowlist import ProfileAllowlist, parse_allowlist, render_allowlist
from hami_web.core.errors import InvalidPolicy
from hami_web.core.geometries import LEGACY_KEY, convert


def parse_device_config(document: object) -> ProfileAllowlist:
    """Take the allowlist out of a device configuration (section ``nvidia``).

    A configuration that still holds ``knownMigGeometries`` is refused: it describes whole-GPU
    layouts, and nothing converts it silently. The refusal shows what it would be.
    """
    section = document.get("nvidia") if isinstance(document, dict) else None
    if not isinstance(section, dict):
        raise InvalidPolicy("nvidia", section, "a mapping with migProfileAllowlist")
    if LEGACY_KEY in section:
        raise InvalidPolicy(f"nvidia.{LEGACY_KEY}", section[LEGACY_KEY], _instead(document))
    return parse_allowlist(section.get("migProfileAllowlist"))


def _instead(document: object) -> str:
    try:
        entries = convert(document).entries
    except InvalidPolicy as error:
        return f"profiles under migProfileAllowlist; it cannot be converted: {error}"
    return f"profiles under migProfileAllowlist, converted:\n{render_allowlist(entries)}"
