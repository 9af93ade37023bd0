"""The demo as a person runs it: its own process, nothing mocked."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from hami_web.simulator.demo_check import STEPS

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def processes_of(folder: Path) -> list[str]:
    """Command lines of programs whose environment or arguments name the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and int(entry.name) != os.getpid():
            found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
    return found


def line_with(process: subprocess.Popen[str], text: str) -> str:
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return line
    pytest.fail(f"no line with {text!r} in:\n{''.join(lines)}")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, for the sockets in it."""
    with tempfile.TemporaryDirectory(prefix="d-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
def demo(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = start(folder, "--port", "0", "--pause", "0.05")
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_check_observes_every_step_and_leaves_nothing(folder: Path) -> None:
    process = start(folder, "--check")
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    told = [line.split("s  ", 1)[1] for line in output.splitlines()]
    steps = [line for line in told if line.startswith(("ok ", "FAILED"))]
    assert [step[7:19].strip() for step in steps] == [name for name, _ in STEPS]
    assert all(step.startswith("ok") for step in steps)
    assert list(folder.iterdir()) == []
    assert processes_of(folder) == []


def test_a_busy_port_is_named_with_the_option_that_chooses_another(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start(folder, "--port", str(port))
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"port {port} on 127.0.0.1 cannot be used" in output
    assert "--port" in output
    assert "Traceback" not in output
    assert list(folder.iterdir()) == []


def test_a_folder_too_long_for_sockets_is_named(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 80)
    deep.mkdir()
    output, _ = start(deep, "--check").communicate(timeout=30)
    assert "set TMPDIR to a shorter one" in output
    assert "Traceback" not in output


def test_the_demo_shows_its_page_and_stops_on_a_signal(
    demo: subprocess.Popen[str], folder: Path
) -> None:
    url = re.search(r"http://\S+", line_with(demo, "The dashboard is at"))[0]
    line_with(demo, " at 0:")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    page = browser.open(url, timeout=5).read().decode()
    assert '<article class="gpu"' in page
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
    form = {"csrfmiddlewaretoken": token, "order": "pause", "next": "/"}
    paused = browser.open(f"{url}demo/order", urllib.parse.urlencode(form).encode(), timeout=5)
    assert (paused.url, 'value="resume"' in paused.read().decode()) == (url, True)
    demo.send_signal(signal.SIGTERM)
    output, _ = demo.communicate(timeout=60)
    assert demo.returncode == 0, output
    assert "nothing is left behind" in output
    assert list(folder.iterdir()) == []
    assert processes_of(folder) == []


def test_nothing_outlives_a_demo_that_is_killed(demo: subprocess.Popen[str], folder: Path) -> None:
    line_with(demo, "the cluster is ready")
    assert len(processes_of(folder)) > 5
    demo.kill()
    demo.wait()
    deadline = time.monotonic() + 10
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(folder) == []
