"""The golden files of the extender's wire."""

from __future__ import annotations

import json
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden" / "extender"


def golden(name):
    return json.loads((GOLDEN / name).read_text())


def body(document):
    return json.dumps(document).encode()
