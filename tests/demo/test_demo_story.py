"""The story's pace as its readers steer it, and its banner on the pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings as product
from django.test import Client
from django.urls import reverse
from django.utils import translation

from hami_web.dashboard import about_page
from hami_web.simulator.demo_board import CHAPTERS, Board, Order, Position, Scene
from hami_web.simulator.demo_pace import Pace, StartAgain
from hami_web.simulator.demo_web import banner
from hami_web.simulator.demo_web import settings as of_the_demo
from hami_web.simulator.demo_web.words import WORDS, page_of
from tests.dashboard.conftest import _english, live  # noqa: F401  # fixtures

NAMES = {
    "small": "14", "profile": "2g.10gb", "pod": "finetune", "moving": "chat-3",
    "place": "2g.12gb 0:2", "node": "gpu-04", "gpu": "GPU-a", "at": "2026-12-01T05:00:00Z",
}  # fmt: skip
LONG = 3000.0
"""Breaths that no test waits for."""


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)


@pytest.fixture
def pace(board: Board) -> Pace:
    return Pace(board, 1.0, lambda: None)


class Aside:
    """A rest in a thread, which a test waits for."""

    def __init__(self, rest: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=rest, daemon=True)
        self._thread.start()

    def is_over(self, within_s: float) -> bool:
        self._thread.join(within_s)
        return not self._thread.is_alive()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_next_ends_the_rests_of_this_chapter_and_of_no_other(board: Board, pace: Pace) -> None:
    pace.announce(Scene.MOVE)
    board.ask(Order.NEXT)
    pace.rest(LONG)
    pace.announce(Scene.RECOVER)
    pace.read(LONG)
    pace.announce(Scene.FOREIGN)
    assert not pace.hurries


def test_a_paused_story_holds_until_it_goes_on(board: Board, pace: Pace) -> None:
    board.ask(Order.PAUSE)
    rest = Aside(lambda: pace.rest(0))
    until(lambda: pace.held)
    assert not rest.is_over(0.3)
    board.ask(Order.RESUME)
    assert rest.is_over(10)


def test_a_paused_story_plays_the_next_chapter_and_holds_at_its_end(
    board: Board, pace: Pace
) -> None:
    pace.announce(Scene.FILL)
    board.ask(Order.PAUSE)
    board.ask(Order.NEXT)
    pace.read(LONG)
    pace.announce(Scene.FRAGMENT)
    pace.rest(0.1)
    end = Aside(lambda: pace.read(0))
    assert not end.is_over(0.3)
    board.ask(Order.NEXT)
    assert end.is_over(10)


def test_again_ends_the_round_and_every_pause(board: Board, pace: Pace) -> None:
    pace.announce(Scene.PLAN, pod="finetune")
    board.ask(Order.PAUSE)
    board.ask(Order.AGAIN)
    with pytest.raises(StartAgain):
        pace.rest(LONG)
    assert (pace.held, board.is_paused()) == (False, False)


def test_the_end_of_a_round_is_neither_held_nor_begun_again(board: Board, pace: Pace) -> None:
    for order in Order:
        board.ask(order)
    pace.settle(0)
    assert board.orders() == []


@pytest.fixture
def demo(settings, tmp_path: Path, live: object) -> Iterator[Client]:  # noqa: F811
    """A browser at the pages of the demo's web process."""
    for name in ("ROOT_URLCONF", "TEMPLATES", "STATICFILES_DIRS"):
        setattr(settings, name, getattr(of_the_demo, name))
    settings.DATA_DIR = tmp_path
    settings.ANONYMOUS_ROLE = "viewer"
    settings.ANONYMOUS_NAMESPACES = ("*",)
    kept = (banner.board, about_page.sent_files)
    for each in kept:
        each.cache_clear()
    yield Client(headers={"host": "localhost"})
    for each in kept:
        each.cache_clear()


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("scene", Scene)
def test_every_scene_is_announced_with_its_place_and_its_page(
    demo: Client, board: Board, scene: Scene, language: str
) -> None:
    position = Position(scene, NAMES)
    board.show(position)
    text = demo.get("/", headers={"accept-language": language}).content.decode()
    told = text.partition('role="status" aria-live="polite">')[2].partition("</p>")[0]
    place = {"en": "{} of {}", "zh-hans": "第 {}/{} 章"}[language]
    assert place.format(position.chapter, len(CHAPTERS)) in told
    assert f'href="{page_of(position)}"'.replace("&", "&amp;") in told
    with translation.override(language):
        assert str(WORDS[scene].title) in told
    assert "%(" not in told


def test_the_story_is_steered_by_forms_alone(demo: Client, board: Board, tmp_path: Path) -> None:
    board.show(Position(Scene.FILL, NAMES))
    assert 'value="pause"' in demo.get("/?view=table").content.decode()
    answer = demo.post("/demo/order", {"order": "pause", "next": "/?view=table"})
    assert (answer.status_code, answer["Location"]) == (302, "/?view=table")
    assert Board(tmp_path).orders() == [Order.PAUSE]
    assert 'value="resume"' in demo.get("/demo/banner").content.decode()


def test_an_order_that_means_nothing_is_refused_and_no_other_host_is_led_to(demo: Client) -> None:
    answer = demo.post("/demo/order", {"order": "stop"})
    assert (answer.status_code, answer.content) == (
        400,
        b"order: allowed: pause, resume, next, again",
    )
    answer = demo.post("/demo/order", {"order": "next", "next": "https://example.org/"})
    assert answer["Location"] == "/"


def test_the_banner_can_be_hidden_and_shown_again(demo: Client, board: Board) -> None:
    board.show(Position(Scene.FILL, NAMES))
    demo.post("/demo/shown", {"shown": "no", "next": "/"})
    hidden = demo.get("/").content.decode()
    assert ('id="demo-story"' in hidden, 'value="yes"' in hidden) == (False, True)
    demo.post("/demo/shown", {"shown": "yes", "next": "/"})
    assert 'id="demo-story"' in demo.get("/").content.decode()


def test_the_about_page_knows_the_licence_of_every_file_of_the_demo(demo: Client) -> None:
    rows = demo.get("/about").content.decode().split("<tr>")
    files = [row for row in rows[1:] if "demo-story" in row]
    assert len(files) == 2
    assert all("Apache-2.0" in row for row in files)


@pytest.mark.usefixtures("live")
def test_the_product_has_no_banner_no_address_and_no_file_of_the_demo(settings) -> None:
    settings.ANONYMOUS_ROLE = "viewer"
    browser = Client(headers={"host": "localhost"})
    assert b"demo" not in browser.get("/").content
    for path in (
        "/demo/banner",
        "/static/dashboard/demo-story.css",
        "/static/dashboard/demo-story.js",
    ):
        assert browser.get(path).status_code == 404
    known = f"{product.ROOT_URLCONF} {product.TEMPLATES} {product.STATICFILES_DIRS}"
    assert "demo" not in f"{known} {product.MIDDLEWARE} {product.INSTALLED_APPS}"
    assert reverse("dashboard:page") == "/"
