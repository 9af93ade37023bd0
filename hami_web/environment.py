"""Read variables of the environment; a wrong value stops the process with one line about it.

What is read is also remembered in :data:`SETTINGS`, with its default and what is allowed: the
reference of settings and ``manage.py configuration`` are made from that.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final

import yaml
from django.core.exceptions import ImproperlyConfigured

from hami_web.core import tracing
from hami_web.core.faults import Fault


class Refused(ImproperlyConfigured):
    """A value that a role cannot run with, and the word for it."""

    def __init__(self, fault: Fault, text: str) -> None:
        self.fault = fault
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable as the code reads it; ``default`` and ``allowed`` are texts for people."""

    name: str
    default: str
    allowed: str
    secret: bool = False

    @property
    def given(self) -> bool:
        """Whether the environment has a value, or a file with one."""
        return bool(_read(self.name) or (self.secret and _read(f"{self.name}_FILE")))

    @property
    def shown(self) -> str:
        """What is in force, for people: a secret is never told."""
        if not self.given:
            return self.default
        return "(secret)" if self.secret else _read(self.name)


SETTINGS: Final[dict[str, Setting]] = {}
"""Every variable that was read so far, by name."""


def text(name: str, default: str = "", allowed: str = "text") -> str:
    """A text without the blanks around it."""
    _remember(name, default, allowed)
    return _read(name, default)


def secret(name: str, default: str = "", allowed: str = "text") -> str:
    """A secret from the variable, or from the file that ``<name>_FILE`` names."""
    SETTINGS[name] = Setting(name, default, allowed, secret=True)
    given = _read(f"{name}_FILE")
    if not given:
        return _read(name) or default
    try:
        found = Path(given).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise Refused(Fault.SECRET, f"{name}_FILE: {given!r}: {reason}") from error
    if not found:
        # A random secret in place of a lost one would end sessions and hide the loss.
        raise Refused(Fault.SECRET, f"{name}_FILE: {given!r}: it is empty")
    return found


def number(name: str, default: float, *, least: float, most: float) -> float:
    """A number in ``least … most``."""
    _remember(name, f"{default:.12g}", f"{least:.12g}…{most:.12g}")
    given = _read(name) or str(default)
    try:
        value = float(given)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise ImproperlyConfigured(
            f"{name}: {given!r} is not allowed; allowed: a number in {least:g}…{most:g}"
        )
    return value


def flag(name: str, default: str = "false") -> bool:
    """``true`` or ``false``."""
    _remember(name, default, "true, false")
    given = _read(name, default).lower()
    if given not in {"true", "false", "1", "0"}:
        raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: true, false")
    return given in {"true", "1"}


def choice(name: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words, in any case; the first is the default."""
    _remember(name, allowed[0], ", ".join(allowed))
    given = _read(name) or allowed[0]
    for word in allowed:
        if word.lower() == given.lower():
            return word
    raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: {', '.join(allowed)}")


def words(name: str, allowed: tuple[str, ...] = (), default: str = "") -> tuple[str, ...]:
    """Words separated by commas; each one of the allowed, where some are given."""
    _remember(name, default, f"{', '.join(allowed) or 'words'}; several with commas")
    given = _read(name) or default
    found = tuple(word.strip() for word in given.split(",") if word.strip())
    for word in found:
        if allowed and word not in allowed:
            raise ImproperlyConfigured(
                f"{name}: {word!r} is not allowed; allowed: {', '.join(allowed)}"
            )
    return found


def networks(name: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses and networks separated by commas."""
    given = words(name)
    _remember(name, "", "addresses and networks; several with commas")
    try:
        return tuple(ip_network(word) for word in given)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name}: {error}; allowed: addresses and networks, as 10.0.0.7 or 10.0.0.0/8"
        ) from error


def endpoint(name: str) -> str:
    """Where spans are sent, empty for nowhere."""
    given = text(name, "", tracing.ENDPOINT)
    if given and not tracing.is_endpoint(given):
        raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: {tracing.ENDPOINT}")
    return given


def address(name: str, default: str) -> str:
    """Where an HTTP server answers."""
    allowed = "http://HOST:PORT, https://HOST:PORT"
    _remember(name, default, allowed)
    given = _read(name) or default
    if not given.startswith(("http://", "https://")):
        raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: {allowed}")
    return given


def sub_path(name: str) -> str:
    """A path of an address without the slash at its end, as ``/tools/gpus``; empty for the root."""
    allowed = "empty, or /NAME/… of letters, digits, - . _ ~"
    _remember(name, "", allowed)
    given = _read(name).rstrip("/")
    if given and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", given):
        raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: {allowed}")
    return given


def path(name: str) -> Path | None:
    """A path; None where the variable is empty."""
    given = text(name, allowed="a path")
    return Path(given) if given else None


def policy_section(name: str, section: str) -> object:
    """One section of the YAML file that the variable names; an empty one without a file."""
    file = path(name)
    if file is None:
        return {}
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Refused(Fault.POLICY, f"{name}: {file}: {error}") from error
    if not isinstance(document, dict):
        raise Refused(Fault.POLICY, f"{name}: {file}: allowed: a YAML mapping")
    return document.get(section) or {}


def _read(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def _remember(name: str, default: str, allowed: str) -> None:
    SETTINGS[name] = Setting(name, default, allowed)
