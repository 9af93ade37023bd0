"""The banner that tells where the story is, as templates need it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from django.conf import settings
from django.http import HttpRequest

from hami_web.simulator.demo_board import CHAPTERS, Board
from hami_web.simulator.demo_web.words import WORDS, page_of

COOKIE: Final = "hami_demo_story"
HIDDEN: Final = "hidden"


@dataclass(frozen=True, slots=True)
class Banner:
    """``page`` is the address that is worth seeing now; ``link`` says what is seen there."""

    chapter: int
    chapters: int
    title: str
    said: str
    link: str
    page: str
    held: bool


@cache
def board() -> Board:
    """That of this process's demo, in the folder of its database."""
    return Board(settings.DATA_DIR)


def current() -> Banner | None:
    """What the story tells now, in the language of the request; None before it began."""
    position = board().position()
    if position is None:
        return None
    words = WORDS[position.scene]
    return Banner(
        chapter=position.chapter,
        chapters=len(CHAPTERS),
        title=str(words.title),
        said=str(words.said) % position.names,
        link=str(words.link),
        page=page_of(position),
        held=board().is_paused(),
    )


def shown(request: HttpRequest) -> dict[str, object]:
    """Context processor: ``story``, whether its reader has hidden it, and a default of the demo."""
    return {
        "story": current(),
        "story_hidden": request.COOKIES.get(COOKIE) == HIDDEN,
        "compare_every_s": f"{settings.RECONCILE_SECONDS:g}",
    }
