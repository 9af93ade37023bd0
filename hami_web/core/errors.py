"""The errors of the MIG domain, each with a stable code that every edge shows unchanged."""

from __future__ import annotations


class CoreError(Exception):
    """Base of everything the domain refuses.

    ``code`` is stable across releases and languages; the text names the field, the value that was
    found and what is allowed.
    """

    code = "mig.error"


class InvalidField(CoreError):
    """One value is not acceptable; ``field`` is its path in what was read."""

    code = "mig.field.invalid"

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f"{field}: {_shown(value)} is not allowed; allowed: {allowed}")


class MalformedContract(InvalidField):
    """An annotation does not follow the wire contract; nothing of it may be used."""

    code = "mig.contract.malformed"


class InvalidCapability(InvalidField):
    """A GPU's published capability contradicts itself; that GPU takes no new work."""

    code = "mig.capability.invalid"


class InvalidRequest(InvalidField):
    """A container asks for something that no GPU could ever be asked for."""

    code = "mig.request.invalid"


class InvalidPolicy(InvalidField):
    """The cluster's policy file cannot be used as it stands."""

    code = "mig.policy.invalid"


class PlacementConflict(CoreError):
    """Two owners claim one memory slice."""

    code = "mig.placement.conflict"


class NoCapacity(CoreError):
    """No legal free placement satisfies the request now."""

    code = "mig.capacity.none"


def _shown(value: object, limit: int = 120) -> str:
    """Quote a foreign value, cut short, so that an error text stays one readable line."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
