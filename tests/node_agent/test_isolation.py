"""The agent takes of the control plane only its core, and of other packages only its own extra."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import node_agent.bootstrap
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"django", "msgspec", "celery", "gunicorn", "uvicorn", "rest_framework"}))
print(sorted({
    ".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("hami_web.")
}))
"""


def test_the_agent_imports_no_web_framework_and_only_the_core() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["[]", "['hami_web.core']"]
