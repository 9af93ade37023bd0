"""Resource quantities, in the canonical text that the API server gives them back in."""

from __future__ import annotations

import re
from fractions import Fraction

_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d+))$")


def parse_quantity(value: object) -> Fraction | None:
    """The exact number that a quantity stands for, or None for what is no quantity."""
    found = _match(value)
    if found is None:
        return None
    number, binary, decimal, exponent = found.groups()
    if binary:
        return Fraction(number) * _power(1024, _BINARY[binary])
    if exponent:
        return Fraction(number) * _power(10, int(exponent))
    return Fraction(number) * _power(1000, _DECIMAL[decimal])


def canonical_quantity(value: object) -> str | None:
    """``9000`` becomes ``9k`` and ``1024Mi`` ``1Gi``, as Go's Quantity prints them."""
    found, amount = _match(value), parse_quantity(value)
    if found is None or amount is None:
        return None
    if found.group(2) and amount.denominator == 1 and abs(amount) >= 1024:
        return _scaled(amount, 1024, {power: suffix for suffix, power in _BINARY.items()})
    return _scaled(amount, 1000, {power: suffix for suffix, power in _DECIMAL.items()})


def _scaled(amount: Fraction, base: int, suffixes: dict[int, str]) -> str:
    """The amount with the largest suffix that leaves a whole number."""
    for power in sorted(suffixes, reverse=True):
        scaled = amount / _power(base, power)
        if amount and scaled.denominator == 1:
            return f"{scaled.numerator}{suffixes[power]}"
    return str(round(amount))


def _power(base: int, exponent: int) -> Fraction:
    """Exact also for negative exponents."""
    return Fraction(base**exponent) if exponent >= 0 else Fraction(1, base**-exponent)


def _match(value: object) -> re.Match[str] | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return _QUANTITY.match(str(value))
