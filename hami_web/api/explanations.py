"""Explanations of refusals for callers who do not see every namespace."""

from __future__ import annotations

from typing import Any, Final

from hami_web.access.visibility import UNAVAILABLE, Visibility

_NOBODY: Final = dict.fromkeys(("namespace", "name", "uid"), UNAVAILABLE)


def masked_explanation(body: dict[str, Any], seen: Visibility) -> dict[str, Any]:
    """The explanation without names of Pods that the caller may not see.

    What is in the way keeps its placement: that it is taken is no secret, by whom is.
    """
    if seen.everything:
        return body
    nodes = [
        {**node, "doubts": [UNAVAILABLE] if node.get("doubts") else []}
        for node in body.get("nodes", ())
    ]
    masked = {**body, "nodes": nodes}
    nearest = body.get("nearest")
    if nearest is not None:
        blocking = nearest.get("reservations", [])
        visible = seen.among({item["namespace"] for item in blocking})
        hidden = any(item["namespace"] not in visible for item in blocking)
        masked["nearest"] = {
            **nearest,
            "reservations": [
                item if item["namespace"] in visible else {**item, **_NOBODY} for item in blocking
            ],
            "text": UNAVAILABLE if hidden else nearest["text"],
        }
    return masked
