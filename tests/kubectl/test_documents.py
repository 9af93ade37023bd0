"""docs/cli.md says what the command line says."""

from __future__ import annotations

import pytest

from hami_web.kubectl.drawing import FILLS
from tests.kubectl.conftest import ROOT, Call


def test_the_document_has_the_help_and_every_character(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = (ROOT / "docs" / "cli.md").read_text()
    told = call("--help").out
    # argparse words and breaks its usage differently between versions of Python
    for line in told[told.index("positional arguments") :].splitlines():
        assert line.split("  ")[-1] in text
    for fill in FILLS.values():
        assert f"`{fill * 3}`" in text
