"""Where a request comes from, beyond the proxies that we were told to trust."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

Network = IPv4Network | IPv6Network


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Addresses and networks, as ``10.0.0.7`` or ``10.0.0.0/8``. Raises ValueError."""
    return tuple(ip_network(text) for text in texts)


def from_trusted_proxy(request: HttpRequest) -> bool:
    """Whether the connection itself is from an allowed proxy."""
    return _is_trusted(str(request.META.get("REMOTE_ADDR", "")))


def client_address(request: HttpRequest) -> str:
    """The nearest address that is no allowed proxy; the connection's own where none is allowed."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    hops = [hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",")]
    while hops and _is_trusted(address):
        hop = hops.pop()
        if _parsed(hop) is None:
            break
        address = hop
    return address[:64]


def _is_trusted(text: str) -> bool:
    address = _parsed(text)
    if address is None:
        return False
    return any(
        address.version == network.version and address in network
        for network in settings.PROXY_ADDRESSES
    )


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
