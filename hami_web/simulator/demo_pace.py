"""The pace of the story: when it goes on, and what its readers ask of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from hami_web.simulator.demo_board import Board, Order, Position, Scene, chapter_of

_STEP_S: Final = 0.1


class StartAgain(Exception):
    """A reader wants the story from its beginning."""


@dataclass(slots=True)
class Pace:
    """``breath_s`` is the shortest rest in seconds; ``check`` raises when the demo cannot go on.

    A paused story still plays the chapter that a reader asks for with "next", and stops before
    it would leave that one.
    """

    board: Board
    breath_s: float
    check: Callable[[], None]
    position: Position = field(default_factory=lambda: Position(Scene.FILL))
    held: bool = False
    hurries: bool = False
    plays_on: bool = False

    def announce(self, scene: Scene, **names: str) -> None:
        """The story comes to a scene."""
        if self.hurries and chapter_of(scene) != self.position.chapter:
            self.hurries, self.plays_on = False, self.held
        self.position = Position(scene, names)
        self.board.show(self.position)

    def rest(self, breaths: float) -> None:
        """Breathe so often. Raises StartAgain, and what ``check`` raises."""
        left = breaths * self.breath_s
        while True:
            self.check()
            for order in self.board.orders():
                self._obey(order)
            holds = self.held and not self.plays_on
            if self.hurries or (left <= 0 and not holds):
                return
            time.sleep(_STEP_S)
            if not holds:
                left -= _STEP_S

    def read(self, breaths: float) -> None:
        """As :meth:`rest`, for people to read what a chapter shows before the next one."""
        self.plays_on = False
        self.rest(breaths)

    def settle(self, breaths: float) -> None:
        """Breathe while a round ends, which nothing can hold up or shorten."""
        time.sleep(breaths * self.breath_s)
        self.check()
        for order in self.board.orders():
            if order in (Order.PAUSE, Order.RESUME):
                self._obey(order)

    def _obey(self, order: Order) -> None:
        if order is Order.NEXT:
            self.hurries = True
            return
        self.held = order is Order.PAUSE
        if order is Order.AGAIN:
            self.hurries = self.plays_on = False
            raise StartAgain
