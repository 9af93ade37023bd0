"""The Chinese documents say what the English ones say: same sections, rows, code and pictures."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.settings_reference import PHRASES, agent, control_plane

ROOT = Path(__file__).parents[2]
CHINESE = ROOT / "docs" / "zh"
TWINS = {
    path.name: ROOT / "README.md" if path.name == "README.md" else ROOT / "docs" / path.name
    for path in sorted(CHINESE.glob("*.md"))
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
