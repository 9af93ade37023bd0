"""What may come next on a command line, asked by shells and by kubectl itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Final

SHELLS: Final = ("bash", "zsh", "fish")
NO_FILES: Final = 4
"""The directive of kubectl's convention: what is listed is all there is."""


def candidates(
    parser: argparse.ArgumentParser, words: Sequence[str], names: Callable[[str], Sequence[str]]
) -> list[str]:
    """Words that can stand where the last of ``words`` is; ``names`` reads the cluster."""
    *before, start = words or [""]
    awaiting: argparse.Action | None = None
    taken = 0
    for word in before:
        if awaiting is not None:
            awaiting = None
        elif word.startswith("-"):
            awaiting = _awaits(parser, word)
        elif (found := _subparser(parser, word)) is not None:
            parser, taken = found, 0
        else:
            taken += 1
    if awaiting is not None:
        found_words = _values(awaiting, names)
    elif start.startswith("-"):
        found_words = [text for action in parser._actions for text in action.option_strings]
    else:
        positionals = [action for action in parser._actions if not action.option_strings]
        found_words = _values(positionals[taken], names) if taken < len(positionals) else []
    return sorted(word for word in found_words if word.startswith(start))


def lines(found: Sequence[str]) -> Iterator[str]:
    """As kubectl reads them from ``kubectl_complete-hami``."""
    yield from found
    yield f":{NO_FILES}"


def _awaits(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    """The option that takes the next word as its value."""
    for action in parser._actions:
        if word in action.option_strings and action.nargs != 0:
            return action
    return None


def _subparser(parser: argparse.ArgumentParser, word: str) -> argparse.ArgumentParser | None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices.get(word)
    return None


def _values(action: argparse.Action, names: Callable[[str], Sequence[str]]) -> Sequence[str]:
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    kind = getattr(action, "completes", "")
    return names(kind) if kind else []
