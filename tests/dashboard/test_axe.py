"""No page breaks a rule of WCAG A or AA that axe-core knows, in either theme and language."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from .test_browser import browser, site  # noqa: F401  # fixtures
from .test_every_page import (
    PATHS,
    WAYS,
    _cluster,  # noqa: F401  # fixture
    _rows_beside_the_browser,  # noqa: F401  # fixture
    page,  # noqa: F401  # fixture
    pytestmark,
)

pytestmark = [*pytestmark, pytest.mark.slow, pytest.mark.timeout(240)]
RULES = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }
}


@pytest.mark.parametrize("page", WAYS[:2], ids=["light", "dark"], indirect=True)
def test_axe_finds_nothing(page: Page) -> None:  # noqa: F811
    axe = Axe()
    found = []
    for path, name in PATHS.items():
        page.goto(path)
        for item in axe.run(page, options=RULES).response["violations"]:
            nodes = [node["html"][:160] for node in item["nodes"][:3]]
            found.append(f"{name}: {item['id']}: {item['help']}: {nodes}")
    assert not found, "\n".join(found)
