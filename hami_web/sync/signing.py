"""The keys by which the worker checks signatures, where it is given them."""

from __future__ import annotations

from django.conf import settings

from hami_web.core.signature import KeyFile


def signing_keys() -> KeyFile | None:
    """The key file of the settings; None where signatures are not checked.

    Raises :class:`InvalidSigningKey` for a file that cannot be used.
    """
    return None if settings.SIGNING_KEYS is None else KeyFile(settings.SIGNING_KEYS)
