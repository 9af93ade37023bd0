"""What is allowed, in the reader's language."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import translation

from hami_web.dashboard.moments import MOMENT
from hami_web.dashboard.templatetags.refusals import SENTENCES, allowed_words
from hami_web.dashboard.wish import ALLOWED

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live")]
REFUSED = [
    "/?q=" + "x" * 201, "/?nothing=1", "/what-if?wish=none", "/what-if?wish=1g.5gb&devices=0",
    "/history?at=x", "/history?ago=x", "/audit?actor=" + "x" * 151, "/namespaces?q=%00",
]  # fmt: skip


@pytest.mark.parametrize("path", REFUSED)
def test_a_refusal_tells_in_chinese_what_is_allowed(client: Client, settings, path: str) -> None:
    settings.ANONYMOUS_ROLE = "admin"
    page = client.get(path, headers={"accept-language": "zh-CN"}).content.decode()
    (allowed,) = re.findall(r"<dt>允许[^<]*</dt><dd><code>([^<]*)</code>", page)
    assert re.search("[\u4e00-\u9fff]", allowed), allowed


@pytest.mark.parametrize("text", [ALLOWED, MOMENT, "minutes in 0…1440", "one of a, b"])
def test_words_are_those_of_the_error_in_english(text: str) -> None:
    assert allowed_words(text) == text


def test_lists_of_values_stay_as_they_are() -> None:
    with translation.override("zh-hans"):
        assert allowed_words("csv, json") == "csv, json"
        assert all(str(words) for _, words in SENTENCES)
