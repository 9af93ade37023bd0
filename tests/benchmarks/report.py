"""One line per goal, and an exit status."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """Prints progress to the error stream and goals to the output."""

    began: float = field(default_factory=time.monotonic)
    lines: list[tuple[str, float, str, bool]] = field(default_factory=list)

    def progress(self, text: str) -> None:
        """What is being measured now."""
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", file=sys.stderr, flush=True)

    def table(self, text: str) -> None:
        """A line of a table."""
        print(text, flush=True)

    def at_least(self, name: str, value: float, bound: float) -> None:
        """A goal that is met from ``bound`` upwards."""
        self.lines.append((name, value, f">={bound:g}", value >= bound))

    def at_most(self, name: str, value: float, bound: float) -> None:
        """A goal that is met up to ``bound``."""
        self.lines.append((name, value, f"<={bound:g}", value <= bound))

    def finish(self) -> int:
        """Print the goals; the number of those that failed, at most 1, is the exit status."""
        print()
        for name, value, bound, passed in self.lines:
            print(f"{name} {value:.4g} {bound} {'pass' if passed else 'fail'}")
        return int(not all(passed for *_, passed in self.lines))
