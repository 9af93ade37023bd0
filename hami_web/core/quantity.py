"""Kubernetes quantities, as far as counts of an extended resource need them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from hami_web.core.errors import InvalidRequest

_SUFFIXES: Final = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20}))"
    r"(?:[eE](?P<exponent>[+-]?\d{1,3})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)",
    re.ASCII,
)


def parse_whole(value: str | int, field: str, *, most: int, unit: str) -> int:
    """Return a quantity as an integer in ``0 … most``.

    ``field`` is the path shown to the user and ``unit`` what one stands for. Raises
    :class:`InvalidRequest` for a fraction, a negative, too large or unreadable quantity.
    """
    allowed = f"a whole number of {unit} in 0…{most}"
    match = _QUANTITY.fullmatch(str(value))
    if match is None or isinstance(value, bool):
        raise InvalidRequest(field, value, allowed)
    number = Decimal(match["number"])
    if match["exponent"]:
        number = number.scaleb(int(match["exponent"]))
    else:
        number *= _SUFFIXES[match["suffix"] or ""]
    if number != number.to_integral_value() or not 0 <= number <= most:
        raise InvalidRequest(field, value, allowed)
    return int(number)
