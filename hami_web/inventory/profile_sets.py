"""Rows for lists of profiles, each distinct list once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256

from hami_web.core.capability import ProfileCapability
from hami_web.inventory.models import KEY_MAX, Profile, ProfileSet
from hami_web.inventory.observed import storable

_FACTS = (
    *("name", "memory_mib", "core_percent", "compute_slices", "memory_slices"),
    *("placements", "instance_limit", "attribute"),
)
Profiles = tuple[ProfileCapability, ...]


def profile_sets(lists: Iterable[Profiles]) -> tuple[dict[Profiles, ProfileSet], list[str]]:
    """The row for each distinct list of profiles, and the digests whose rows had to be mended."""
    digests = {profiles: _digest(profiles) for profiles in lists}
    found = ProfileSet.objects.filter(digest__in=digests.values()).prefetch_related("profiles")
    known = {row.digest: row for row in found}
    mended = []
    for profiles, digest in digests.items():
        row = known.get(digest)
        if row is None:
            known[digest] = row = ProfileSet.objects.create(digest=digest)
            Profile.objects.bulk_create(_rows(profiles, row))
        elif not _are_equal(row.profiles.all(), _rows(profiles, row)):
            mended.append(digest)
            row.profiles.all().delete()
            Profile.objects.bulk_create(_rows(profiles, row))
    return {profiles: known[digest] for profiles, digest in digests.items()}, mended


def _digest(profiles: Profiles) -> str:
    facts = [
        (
            *(p.name, p.memory_mib, p.core_percent, p.compute_slices),
            *(p.instance_limit, p.attribute),
            *((place.start, place.size) for place in p.placements),
        )
        for p in profiles
    ]
    return sha256(json.dumps(facts).encode()).hexdigest()


def _rows(profiles: Profiles, profile_set: ProfileSet) -> list[Profile]:
    return [
        Profile(
            profile_set=profile_set,
            name=storable(profile.name, KEY_MAX),
            memory_mib=profile.memory_mib,
            core_percent=profile.core_percent,
            compute_slices=profile.compute_slices,
            memory_slices=profile.memory_slices,
            placements=[[place.start, place.size] for place in profile.placements],
            instance_limit=profile.instance_limit,
            attribute=storable(profile.attribute, KEY_MAX),
        )
        for profile in profiles
    ]


def _are_equal(stored: Iterable[Profile], wanted: Iterable[Profile]) -> bool:
    def facts(rows: Iterable[Profile]) -> list[tuple[str, ...]]:
        return sorted(tuple(str(getattr(row, name)) for name in _FACTS) for row in rows)

    return facts(stored) == facts(wanted)
