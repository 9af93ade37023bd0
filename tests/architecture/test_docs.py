"""The documents agree with the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hami_web.core.faults import Fault
from hami_web.core.geometries import NoteCode
from hami_web.core.reasons import Reason
from hami_web.migration.codes import MEANINGS, FindingCode
from node_agent import podevents, recovery

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SETTINGS = (
    ROOT / "hami_web" / "settings.py",
    ROOT / "hami_web" / "access_settings.py",
    ROOT / "node_agent" / "config.py",
)


def variables() -> set[str]:
    return {
        name
        for path in SETTINGS
        for name in re.findall(r'"((?:HAMI|NODE|KUBE|OTEL)[A-Z_]+)"', path.read_text())
    }


def test_the_tables_of_settings_are_what_the_code_reads() -> None:
    # In a clean environment: some defaults follow from other settings.
    subprocess.run(
        [sys.executable, "-m", "tests.architecture.settings_reference", "--check"],
        cwd=ROOT,
        env={"PATH": "/usr/bin"},
        check=True,
    )


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_setting_is_documented_with_its_meaning(name: str) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    rows = re.findall(rf"^\| `{name}` \| [^|]+ \| [^|]+ \| ([^|]*) \|$", text, re.MULTILINE)
    assert rows
    assert all(len(meaning) > 5 for meaning in rows), rows


def test_every_documented_setting_exists() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text()
    documented = set(re.findall(r"^\| `([A-Z_]+)`", text, re.MULTILINE))
    assert documented == variables()


def anchors(text: str) -> list[str]:
    """What `#` leads to in a document, in order: headings, as hosts of repositories spell them."""
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    headings = re.findall(r"(?m)^#+ (.+)$", prose)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_resolves(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
        led = document.parent / target if target else document
        assert led.exists(), target
        if anchor:
            assert anchor in anchors(led.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_every_target_that_the_documents_name_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {
        target
        for document in DOCUMENTS
        for target in re.findall(r"\bmake ([a-z-]+)\b`", document.read_text())
    }
    assert named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_decision_record_is_in_the_index_and_has_its_sections() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    for path in sorted((ROOT / "docs" / "adr").glob("0*.md")):
        assert f"({path.name})" in index, path.name
        for section in ("## Context", "## Decision", "## Consequences"):
            assert section in path.read_text(), (path.name, section)


@pytest.mark.parametrize("reason", sorted(Reason))
def test_every_reason_has_a_row_that_says_what_to_do(reason: Reason) -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    assert re.search(rf"^\| `{re.escape(reason)}` \| .+ \| .+ \|$", text, re.MULTILINE)


@pytest.mark.parametrize("fault", sorted(Fault))
def test_every_fault_of_a_role_has_a_row_that_says_what_to_do(fault: Fault) -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    assert re.search(rf"^\| `{fault}` \|( [^|]*\|){{3}} [^|]+ \|$", text, re.MULTILINE)


CAUSE_POSITION = {"GpuProblem": 2, "Verdict": 1, "_NotOffered": 0}
"""Where the word for the node's condition stands among the arguments of a call."""


def causes() -> Iterator[str]:
    """Words that the agent puts into the node's condition, as its code spells them."""
    for path in (ROOT / "node_agent").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                position = CAUSE_POSITION.get(call.func.id, len(call.args))
                for argument in call.args[position : position + 1]:
                    if isinstance(argument, ast.Constant):
                        yield str(argument.value)
    yield from recovery.CODES
    yield from ("MigModeOff", "MigModePending", "MigModeEnding", "NoDriver", "NoGpu", "OtherOwner")
    yield from ("AllGpusOffered", "SomeGpusNotOffered", "Unhealthy", "Drift")


@pytest.mark.parametrize("word", sorted({*causes(), *podevents.Reason}))
def test_every_word_of_the_agent_is_explained(word: str) -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    assert re.search(rf"^\|[^|]*`{word}`", text, re.MULTILINE)


def test_the_words_are_found_in_the_code() -> None:
    assert {"NotListed", "Lost", "Unreadable", "AgentStopped", "ResetNeeded"} <= {*causes()}


@pytest.mark.parametrize("code", sorted({*FindingCode, *NoteCode}))
def test_every_finding_of_a_migration_is_explained(code: str) -> None:
    text = (ROOT / "docs" / "migration.md").read_text()
    assert re.search(rf"^\| `{code}` \| .+ \|$", text, re.MULTILINE)


@pytest.mark.parametrize("code", sorted(FindingCode))
def test_the_gravity_of_a_finding_is_told_as_it_is(code: FindingCode) -> None:
    text = (ROOT / "docs" / "migration.md").read_text()
    assert f"| `{code}` | {MEANINGS[code].severity} |" in text
