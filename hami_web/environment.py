"""Read variables of the environment; a wrong value stops the process with one line about it."""

from __future__ import annotations

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

import yaml
from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    """A text without the blanks around it."""
    return os.environ.get(name, default).strip()


def secret(name: str) -> str:
    """A secret from the variable, or from the file that ``<name>_FILE`` names."""
    given = text(f"{name}_FILE")
    if not given:
        return text(name)
    try:
        return Path(given).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE: {given!r}: {error.strerror}") from error


def number(name: str, default: float, *, least: float, most: float) -> float:
    """A number in ``least … most``."""
    given = text(name) or str(default)
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
    given = text(name, default).lower()
    if given not in {"true", "false", "1", "0"}:
        raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: true, false")
    return given in {"true", "1"}


def choice(name: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words, in any case; the first is the default."""
    given = text(name) or allowed[0]
    for word in allowed:
        if word.lower() == given.lower():
            return word
    raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: {', '.join(allowed)}")


def words(name: str, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Words separated by commas; each one of the allowed, where some are given."""
    found = tuple(word.strip() for word in text(name).split(",") if word.strip())
    for word in found:
        if allowed and word not in allowed:
            raise ImproperlyConfigured(
                f"{name}: {word!r} is not allowed; allowed: {', '.join(allowed)}"
            )
    return found


def networks(name: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses and networks separated by commas."""
    try:
        return tuple(ip_network(word) for word in words(name))
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name}: {error}; allowed: addresses and networks, as 10.0.0.7 or 10.0.0.0/8"
        ) from error


def address(name: str, default: str) -> str:
    """Where an HTTP server answers."""
    given = text(name) or default
    if not given.startswith(("http://", "https://")):
        allowed = "http://HOST:PORT, https://HOST:PORT"
        raise ImproperlyConfigured(f"{name}: {given!r} is not allowed; allowed: {allowed}")
    return given


def path(name: str) -> Path | None:
    """A path; None where the variable is empty."""
    given = text(name)
    return Path(given) if given else None


def policy_section(name: str, section: str) -> object:
    """One section of the YAML file that the variable names; an empty one without a file."""
    file = path(name)
    if file is None:
        return {}
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ImproperlyConfigured(f"{name}: {file}: {error}") from error
    if not isinstance(document, dict):
        raise ImproperlyConfigured(f"{name}: {file}: allowed: a YAML mapping")
    return document.get(section) or {}
