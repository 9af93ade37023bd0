"""When a map of 2,000 GPUs can be used in Chromium, from the start of its navigation.

Each visit is a browser with nothing cached. It is over when all was there: the picture, the search
that takes what is typed, and the cells of a Pod that light up under the pointer. What else a
machine does makes it longer, but not the processor time of the page's own thread.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Final
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.report import Report

VISITS: Final = 5
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
                "--disable-background-networking", "--disable-component-update")  # fmt: skip
_SEEN: Final = """async () => {
  const whole = () => document.readyState !== "loading";
  const drawn = () => whole() && document.querySelector("svg.memory .cell");
  while (!drawn()) await new Promise(requestAnimationFrame);
  return performance.now();
}"""
_TYPED: Final = """() => {
  const search = document.activeElement;
  return search.type === "search" && search.value ? performance.now() : 0;
}"""
_LIT: Final = "() => document.querySelectorAll('.cell.kin').length > 1 ? performance.now() : 0"


def measure(report: Report, environment: Mapping[str, str]) -> None:
    """Visit the map some times; the goal is the median visit."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        report.table("no Chromium here: what it makes of the map was not measured")
        return
    report.progress(f"{VISITS} visits with Chromium")
    with _site(environment) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        _visit(browser, address)
        visits = sorted((_visit(browser, address) for _ in range(VISITS)), key=lambda each: each[2])
        seen, typed, lit, busy = visits[len(visits) // 2]
        found = median(_search(browser, address) for _ in range(3))
        browser.close()
    report.table(
        f"in Chromium after {seen:.2f} s drawn, {typed:.2f} s search, {lit:.2f} s lit up under the "
        f"pointer ({visits[0][2]:.2f} to {visits[-1][2]:.2f}), with {busy:.2f} s of the page's "
        f"thread; a search took {found:.2f} s"
    )
    report.at_most("map-interactive-s", lit, 1.5)


def _visit(browser: Browser, address: str) -> tuple[float, float, float, float]:
    """Seconds until the map was drawn, the search answered, and a Pod lit up; those of work."""
    with _page(browser) as page:
        measured = page.context.new_cdp_session(page)
        measured.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(address, wait_until="commit")
        seen = page.evaluate(_SEEN)
        typed = _until(page, _TYPED, lambda: (page.keyboard.press("/"), page.keyboard.type("n")))
        box = page.locator(".cell[data-pod]").first.bounding_box()
        assert box is not None
        left, top = box["x"] + 4, box["y"] + 4
        steps = iter(range(10_000))
        lit = _until(page, _LIT, lambda: page.mouse.move(left + next(steps) % 9, top))
        metrics = measured.send("Performance.getMetrics")["metrics"]
        busy = next(each["value"] for each in metrics if each["name"] == "TaskDuration")
        return seen / 1e3, typed / 1e3, lit / 1e3, busy


def _search(browser: Browser, address: str) -> float:
    """Seconds from Enter to the page that holds what was searched for."""
    with _page(browser) as page:
        page.goto(address)
        page.keyboard.press("/")
        page.keyboard.type("gpu-node-123")
        began = time.monotonic()
        page.keyboard.press("Enter")
        page.wait_for_url("**/?*q=gpu-node-123*")
        page.locator(".gpu").nth(7).wait_for()
        return time.monotonic() - began


def _until(page: Page, condition: str, act: Callable[[], object]) -> float:
    deadline = time.monotonic() + 30
    while not (at := page.evaluate(condition)):
        assert time.monotonic() < deadline
        act()
    return float(at)


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(locale="en", viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


@contextmanager
def _site(environment: Mapping[str, str]) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.dashboard.site", str(port)],
        env={**os.environ, **environment},
    )
    try:
        _wait(f"http://localhost:{port}/readyz")
        yield f"http://localhost:{port}/"
    finally:
        process.terminate()
        process.wait(20)


def _wait(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urlopen(address, timeout=10).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return
