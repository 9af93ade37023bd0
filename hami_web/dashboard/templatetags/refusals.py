"""What is allowed, of a refused parameter, in the reader's language."""

from __future__ import annotations

import re
from typing import Final

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

register = template.Library()

SENTENCES: Final[tuple[tuple[re.Pattern[str], Promise], ...]] = (
    (
        re.compile(r"at most (?P<most>\d+) characters, none of them NUL"),
        _("at most %(most)s characters, none of them NUL"),
    ),
    (re.compile(r"at most (?P<most>\d+) characters"), _("at most %(most)s characters")),
    (re.compile(r"1…(?P<most>\d+) characters"), _("1…%(most)s characters")),
    (re.compile(r"one of (?P<names>.+)"), _("one of %(names)s")),
    (re.compile(r"minutes in 0…(?P<most>\d+)"), _("minutes in 0…%(most)s")),
    (re.compile(r"a whole number in 1…(?P<most>\d+)"), _("a whole number in 1…%(most)s")),
    (
        re.compile(r"a time as (?P<example>\S+), at most (?P<most>\d+) days back"),
        _("a time as %(example)s, at most %(most)s days back"),
    ),
    (
        re.compile(
            r"a profile as 3g\.20gb, or memory as 20000 MiB or 20 GiB, and x2 for two such Pods "
            r"\(at most (?P<most>\d+)\)"
        ),
        _(
            "a profile as 3g.20gb, or memory as 20000 MiB or 20 GiB, and x2 for two such Pods "
            "(at most %(most)s)"
        ),
    ),
    (
        re.compile(r"at most (?P<most>\d+) views of (?P<bytes>\d+) bytes"),
        _("at most %(most)s views of %(bytes)s bytes"),
    ),
    (re.compile(r"a page of this dashboard"), _("a page of this dashboard")),
)
"""English texts of errors as logs and the REST API have them, with their words for pages."""


@register.filter
def allowed_words(text: str) -> str:
    """Words where there are some; lists of values and what is unknown stay as they are."""
    for pattern, words in SENTENCES:
        found = pattern.fullmatch(str(text))
        if found:
            return str(words) % found.groupdict()
    return str(text)
