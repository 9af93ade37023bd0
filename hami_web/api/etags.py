"""Entity tags of single objects, and the precondition that a write may carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from django.utils.http import parse_etags
from rest_framework.request import Request

from hami_web.api.codes import PRECONDITION
from hami_web.api.problems import Problem


def etag_of(document: Mapping[str, object]) -> str:
    """A tag that is equal exactly for equal documents."""
    text = json.dumps(document, sort_keys=True, default=str)
    return f'"{sha256(text.encode()).hexdigest()[:32]}"'


def check_match(request: Request, document: Mapping[str, object]) -> None:
    """Raise a problem (412) where ``If-Match`` names another state than this one.

    A tag counts as well where an answer was compressed on its way, which makes it weak.
    """
    header = request.headers.get("If-Match")
    if header is None:
        return
    given = {tag.removeprefix("W/") for tag in parse_etags(header)}
    current = etag_of(document)
    if "*" not in given and current not in given:
        raise Problem(
            PRECONDITION,
            f"If-Match: {header[:200]} is not the current {current}",
            current=dict(document),
            etag=current,
        )
