"""Every text of the command line exists in Chinese."""

from __future__ import annotations

import ast
import gettext
import string
import subprocess
import sys
from pathlib import Path

import pytest

from hami_web.core.reasons import Reason
from hami_web.kubectl import wording
from tests.kubectl.conftest import ROOT, Call


def texts() -> list[str]:
    found = set()
    for path in (ROOT / "hami_web" / "kubectl").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("tr", "noted"):
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    found.add(first.value)
    return sorted(found)


def fields(text: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(text)} - {None}


def test_every_text_is_translated_with_its_fields() -> None:
    catalogue = gettext.translation(wording.DOMAIN, wording.FOLDER, ["zh_Hans"])
    for text in texts():
        translated = catalogue.gettext(text)
        assert translated != text, text
        assert fields(translated) == fields(text), text
    assert len(texts()) > 80


def test_every_reason_has_words() -> None:
    assert set(wording.REASONS) == set(Reason)


@pytest.mark.parametrize("variable", ["LC_ALL", "LC_MESSAGES", "LANG"])
def test_the_environment_chooses_the_language(
    call: Call, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv(variable, "zh_CN.UTF-8")
    assert "退出码" in call("--help").out
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    assert "Exit codes" in call("--help").out


def test_no_framework_is_loaded_for_the_command_line() -> None:
    code = (
        "import sys, hami_web.kubectl.main as m, hami_web.kubectl.offline;"
        "print([n for n in ('django', 'celery', 'rest_framework') if n in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"
    assert Path(wording.FOLDER).is_dir()
