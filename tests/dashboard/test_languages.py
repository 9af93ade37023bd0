"""English and Simplified Chinese, both complete."""

from __future__ import annotations

import gettext
import re
from pathlib import Path

import pytest
from django.test import Client

from hami_web.dashboard.freshness import Freshness

from .given import GivenMap

CATALOG = Path(__file__).parents[2] / "hami_web/locale/zh_Hans/LC_MESSAGES"
# Words that stay English in Chinese text, and units.
KEPT = {
    "CI", "GI", "GPU", "HAMi", "MIG", "MiB", "NVIDIA", "Pod", "UUID", "cordon", "gpu", "nvidia",
    "CSV", "JSON", "SVG", "drain", "on", "placement", "profile", "size", "smi", "start", "English",
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("live")


def catalog() -> dict[str, str]:
    text = (CATALOG / "django.po").read_text(encoding="utf-8")
    assert "#, fuzzy" not in text
    single = re.findall(r'^msgid "(.+)"\nmsgstr "(.*)"', text, re.MULTILINE)
    plural = re.findall(r'^msgid "(.+)"\nmsgid_plural ".+"\nmsgstr\[0\] "(.*)"', text, re.MULTILINE)
    return dict(single + plural)


def visible(page: str) -> str:
    """Text of a page without what comes from the cluster."""
    page = re.sub(r"<(head|code|caption class).*?</\1>", " ", page, flags=re.DOTALL)
    page = re.sub(r'<option value="([^"]+)"[^>]*>\1</option>', " ", page)
    page = re.sub(r'class="(pod|profile|model|uuid)"[^>]*>[^<]*<', "><", page)
    return re.sub(r"<[^>]+>", " ", page)


def chinese(client: Client, path: str) -> str:
    return client.get(path, headers={"accept-language": "zh-CN"}).content.decode()


def test_every_text_is_translated() -> None:
    assert [text for text, translated in catalog().items() if not translated] == []


def test_the_compiled_catalog_is_that_of_the_source() -> None:
    with (CATALOG / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert {text: compiled.ngettext(text, "", 1) for text in catalog() if "%(count)d" in text} == {
        text: translated for text, translated in catalog().items() if "%(count)d" in text
    }
    plain = {text: translated for text, translated in catalog().items() if "%(count)d" not in text}
    assert {text: compiled.gettext(text) for text in plain} == plain


def test_placeholders_survive_the_translation() -> None:
    for text, translated in catalog().items():
        assert sorted(re.findall(r"%\(\w+\)[sd]", text)) == sorted(
            re.findall(r"%\(\w+\)[sd]", translated)
        )


def test_every_text_of_templates_and_words_is_in_the_catalog() -> None:
    root = Path(__file__).parents[2]
    found = set()
    for path in (root / "templates").rglob("*.html"):
        found |= set(re.findall(r"""{% translate ["'](.+?)["'] %}""", path.read_text()))
    words = (root / "hami_web/dashboard/wording.py").read_text()
    found |= set(re.findall(r'\b(?:_|gettext)\("(.+?)"\)', words))
    assert found - set(catalog()) == set()


@pytest.mark.parametrize("path", ["/", "/?view=table"])
def test_a_chinese_page_has_no_english_left(client: Client, live: GivenMap, path: str) -> None:
    live.told = Freshness(240.0)
    text = visible(chinese(client, path))
    data = r"0/3 nodes[^<]*?Infeasible\.|a GPU instance that no reservation explains|"
    data += r"gpu-\w+-\d+|[\w-]+/[\w-]+|\d+g\.\d+gb|NVIDIA \S+(?: 80GB HBM3)?|GPU-\S+"
    words = set(re.findall(r"[A-Za-z]{2,}", re.sub(data, " ", text)))
    assert words - KEPT == set()
    assert "显存切片" in text


def test_the_reader_can_choose_the_language(client: Client) -> None:
    assert 'lang="en"' in client.get("/").content.decode()
    client.post("/language", {"language": "zh-hans", "next": "/?view=table"})
    page = client.get("/").content.decode()
    assert '<html lang="zh-hans">' in page
    assert "集群视图" in page
