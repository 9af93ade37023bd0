"""The pages of the dashboard, as the table of addresses has them: a new one cannot be forgotten."""

from __future__ import annotations

from itertools import chain
from typing import Final

from django.urls import URLPattern, reverse

from hami_web.access import urls as access_urls
from hami_web.access.declared import declaration_of
from hami_web.dashboard import urls as dashboard_urls

from .test_drawing import GPU

EXAMPLES: Final[dict[str, dict[str, object]]] = {
    "dashboard:document": {"name": "dashboard"},
    "dashboard:migration-run": {"pk": 1},
    "dashboard:handover": {"pk": 1},
    "dashboard:namespace-page": {"namespace": "team"},
    "dashboard:node-page": {"name": "n1"},
    "dashboard:gpu-page": {"uuid": GPU},
    "dashboard:pod-page": {"namespace": "team", "name": "waits"},
}
"""Arguments of the pages that have some; the rows are those of test_every_page."""
SENT_TO: Final = frozenset({
    "dashboard:save-settings", "dashboard:save-view", "dashboard:forget-view",
    "dashboard:migration-start", "dashboard:migration-cancel", "dashboard:cordon",
    "dashboard:handover-start", "dashboard:handover-approve", "dashboard:handover-withdraw",
    "dashboard:handover-turn-back", "dashboard:handover-close",
    "dashboard:uncordon", "dashboard:acknowledge", "access:logout",
})  # fmt: skip
"""Addresses that forms send to and nobody reads."""
ELSEWHERE: Final = frozenset({"access:oidc", "access:oidc-callback"})
"""Addresses that lead to a provider and back, without a page."""


def page_names() -> list[str]:
    """Names of all addresses that people read, in the order of the table."""
    named = chain(
        (("dashboard", each) for each in dashboard_urls.urlpatterns),
        (("access", each) for each in access_urls.urlpatterns),
    )
    found = [f"{app}:{each.name}" for app, each in named if not _is_fragment(each)]
    return [name for name in found if name not in SENT_TO | ELSEWHERE]


def page_paths() -> dict[str, str]:
    """A path of each page by its name. Raises NoReverseMatch for a page without an example."""
    return {name: reverse(name, kwargs=EXAMPLES.get(name)) for name in page_names()}


def _is_fragment(pattern: URLPattern) -> bool:
    declared = declaration_of(pattern.callback, "GET")
    return declared is not None and declared.fragment
