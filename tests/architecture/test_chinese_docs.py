"""The Chinese documents say what the English ones say: same sections, rows, code and pictures."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.settings_reference import PHRASES, agent, control_plane
from tests.architecture.test_docs import anchors

ROOT = Path(__file__).parents[2]
CHINESE = ROOT / "docs" / "zh"
ONLY_ENGLISH = {"adr", "zh"}
"""Folders of docs without twins: records of decisions, and the twins themselves."""
TWINS = {
    str(path.relative_to(CHINESE)): ROOT / "README.md"
    if path == CHINESE / "README.md"
    else ROOT / "docs" / path.relative_to(CHINESE)
    for path in sorted(CHINESE.rglob("*.md"))
}
NAMES = re.compile(r"(?<=\|)(?: [A-Za-z0-9.+-]+){1,4} (?=\|)")
"""Cells of a table that hold a name, a licence or a few words of a program, as they are."""
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    return _FENCE.sub("", text)


def levels(text: str) -> list[int]:
    return [len(mark) for mark in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]


def rows(text: str) -> list[int]:
    """Cells of each table row, in their order."""
    return [line.count("|") for line in prose(text).splitlines() if line.startswith("|")]


def spans(text: str) -> Counter[str]:
    return Counter(re.findall(r"`([^`]+)`", prose(text)))


def commands(text: str) -> list[str]:
    """Code blocks without their comments, which are translated."""
    return [re.sub(r"\s+# .*", "", block) for block in _FENCE.findall(text)]


def links(path: Path) -> list[tuple[str, int | None]]:
    """What each link leads to, as the English file and the place of the heading in it."""
    found = []
    for link in re.findall(r"\]\(([^)]+)\)", prose(path.read_text(encoding="utf-8"))):
        target, _, anchor = link.partition("#")
        if "://" in link:
            found.append((link, None))
            continue
        led = (path.parent / target).resolve() if target else path
        text = led.read_text(encoding="utf-8") if anchor else ""
        place = anchors(text).index(anchor) if anchor else None
        english = TWINS[str(led.relative_to(CHINESE))] if led.is_relative_to(CHINESE) else led
        found.append((str(english.relative_to(ROOT)), place))
    return sorted(found, key=repr)


def test_every_document_has_a_chinese_twin() -> None:
    docs = ROOT / "docs"
    english = {path.relative_to(docs) for path in docs.rglob("*.md")}
    wanted = {str(path) for path in english if path.parts[0] not in ONLY_ENGLISH}
    assert TWINS.keys() == wanted | {"README.md"}


@pytest.mark.parametrize("name", TWINS)
def test_a_chinese_document_leads_where_its_twin_leads(name: str) -> None:
    assert [
        link for link in links(CHINESE / name) if link[0] not in ("docs/zh/README.md", "README.md")
    ] == [link for link in links(TWINS[name]) if link[0] not in ("docs/zh/README.md", "README.md")]


@pytest.mark.parametrize("name", TWINS)
def test_a_chinese_document_has_what_its_twin_has(name: str) -> None:
    english = TWINS[name].read_text(encoding="utf-8")
    chinese = (CHINESE / name).read_text(encoding="utf-8")
    assert levels(chinese) == levels(english)
    assert rows(chinese) == rows(english)
    assert commands(chinese) == commands(english)
    # What is code in one language is code in the other.
    assert spans(chinese) == spans(english)


@pytest.mark.parametrize("name", TWINS)
def test_a_chinese_document_is_chinese(name: str) -> None:
    for paragraph in re.split(r"\n\n", prose((CHINESE / name).read_text(encoding="utf-8"))):
        names = r"`[^`]*`|<[^>]*>|\[[^]]*\]\([^)]*\)|^#.*|\|[-|]+\|"
        words = re.sub(names, "", NAMES.sub("", paragraph))
        latin, han = len(re.findall(r"[A-Za-z]", words)), len(re.findall("[\u4e00-\u9fff]", words))
        assert latin < 40 or han > latin / 6, paragraph


def test_what_is_allowed_is_said_in_chinese() -> None:
    allowed = {row[2] for row in (*control_plane(), *agent())}
    assert {words for words in allowed if re.search("[a-z]+ [a-z]+", words)} <= PHRASES.keys()
