"""What the story and the pages of the demo tell each other, as two files in the demo's folder.

The story writes where it is, whole and renamed; the pages append what a reader asks for.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec


class Scene(StrEnum):
    """What is to be seen now; the words for it are the pages' (demo_web/words.py)."""

    FILL = "fill"
    FRAGMENT = "fragment"
    EXPLAIN = "explain"
    PLAN = "plan"
    MOVE = "move"
    RECOVER = "recover"
    FOREIGN = "foreign"
    ALERT = "alert"
    CLEARED = "cleared"
    CLOSE = "close"


CHAPTERS: Final[tuple[tuple[Scene, ...], ...]] = (
    (Scene.FILL,),
    (Scene.FRAGMENT,),
    (Scene.EXPLAIN,),
    (Scene.PLAN,),
    (Scene.MOVE, Scene.RECOVER),
    (Scene.FOREIGN, Scene.ALERT, Scene.CLEARED, Scene.CLOSE),
)
"""The scenes of each chapter, in the order of the story."""


class Order(StrEnum):
    """What a reader may ask of the story."""

    PAUSE = "pause"
    RESUME = "resume"
    NEXT = "next"
    AGAIN = "again"


class Position(msgspec.Struct, frozen=True):
    """Where the story is; ``names`` are those that the scene's words and link need."""

    scene: Scene
    names: dict[str, str] = {}

    @property
    def chapter(self) -> int:
        """1 for the first."""
        return chapter_of(self.scene)


def chapter_of(scene: Scene) -> int:
    """The number of a scene's chapter; 1 for the first."""
    return next(number for number, scenes in enumerate(CHAPTERS, 1) if scene in scenes)


class Board:
    """One writer of each file: the story, and the process of the pages."""

    def __init__(self, folder: Path) -> None:
        self._position = folder / "story.json"
        self._orders = folder / "orders"
        self._read = 0

    def show(self, position: Position) -> None:
        """Tell the pages where the story is."""
        draft = self._position.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(position))
        draft.replace(self._position)

    def position(self) -> Position | None:
        """Where the story is; None before it began."""
        try:
            return msgspec.json.decode(self._position.read_bytes(), type=Position)
        except FileNotFoundError:
            return None

    def ask(self, order: Order) -> None:
        """Ask something of the story."""
        descriptor = os.open(self._orders, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, f"{order}\n".encode())
        finally:
            os.close(descriptor)

    def orders(self) -> list[Order]:
        """What was asked since the last call, oldest first."""
        lines = self._lines(self._read)
        self._read += len(lines)
        return [Order(word) for word in lines.decode().split()]

    def is_paused(self) -> bool:
        """Whether a pause was asked for last, also where the story has not read that yet."""
        asked = [word for word in self._lines(0).decode().split() if word != Order.NEXT]
        return asked[-1:] == [Order.PAUSE]

    def _lines(self, start: int) -> bytes:
        try:
            with self._orders.open("rb") as file:
                file.seek(start)
                return file.read()
        except FileNotFoundError:
            return b""
