"""Failed sign-ins make the next one wait: in the database, so that all web processes agree."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from django.db import transaction
from django.db.models import F

from hami_web.access.models import SignInFailure

FORGOTTEN_AFTER: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Limit:
    """After ``free`` failures each further one doubles the wait, from a second to ``most_s``."""

    free: int
    most_s: float

    def wait_s(self, failures: int) -> float:
        """Seconds that have to pass after the last of so many failures."""
        if failures < self.free:
            return 0.0
        return min(self.most_s, 2.0 ** min(failures - self.free, 20))


BY_PAIR: Final = Limit(5, 900)
BY_ADDRESS: Final = Limit(20, 900)
BY_NAME: Final = Limit(50, 60)
"""Of one name from anywhere: a short wait, so that others cannot lock a person out."""


def wait_s(name: str, address: str) -> float:
    """Seconds until this name may be tried from this address; 0 when at once."""
    limits = _keys(name, address)
    now = datetime.now(UTC)
    waits = [0.0]
    for row in SignInFailure.objects.filter(key__in=limits, last_at__gt=now - FORGOTTEN_AFTER):
        passed_s = (now - row.last_at).total_seconds()
        waits.append(limits[row.key].wait_s(row.count) - passed_s)
    return max(waits)


def note_failure(name: str, address: str) -> None:
    """Count a failure."""
    now = datetime.now(UTC)
    with transaction.atomic():
        for key in sorted(_keys(name, address)):
            row, _ = SignInFailure.objects.get_or_create(key=key, defaults={"last_at": now})
            old = row.last_at <= now - FORGOTTEN_AFTER
            count = 1 if old else F("count") + 1
            SignInFailure.objects.filter(pk=row.pk).update(count=count, last_at=now)


def forget_failures(name: str, address: str) -> None:
    """Someone signed in: their own failures are over, those of the address stay."""
    keys = [key for key, limit in _keys(name, address).items() if limit is not BY_ADDRESS]
    SignInFailure.objects.filter(key__in=keys).delete()


def prune_failures(now: datetime) -> int:
    """Delete what counts no more; returns how many rows."""
    return SignInFailure.objects.filter(last_at__lt=now - FORGOTTEN_AFTER).delete()[0]


def _keys(name: str, address: str) -> dict[str, Limit]:
    where = _network(address)
    return {
        _digest("pair", name.casefold(), where): BY_PAIR,
        _digest("address", where): BY_ADDRESS,
        _digest("name", name.casefold()): BY_NAME,
    }


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


def _network(address: str) -> str:
    """One subscriber has a whole /64 of IPv6 addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return address
