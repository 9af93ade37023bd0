"""The tables of licences in the documents: distributions in images, and files that are sent.

``make docs`` rewrites the tables in each language and keeps the words around them. Versions and
names come from the locks, licences from the metadata of the same releases in this environment.
"""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import django
from packaging.markers import default_environment
from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]
LOCKS: Final = ROOT / "deploy" / "images" / "locks"
ROLES: Final = ("control-plane", "node-agent")
DOCUMENTS: Final = (ROOT / "docs" / "licences.md", ROOT / "docs" / "zh" / "licences.md")
IMAGE: Final = {"python_full_version": "3.11.9", "python_version": "3.11", "sys_platform": "linux"}
"""What markers of a lock are asked in an image; its Python is the newest 3.11."""
SPDX: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD 3-Clause OR Apache-2.0": "Apache-2.0 OR BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",
    "MIT License": "MIT",
    "New BSD": "BSD-3-Clause",
}
"""Older spellings of metadata; the texts that those distributions bring were read."""
_TABLE: Final = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def shipped(role: str) -> dict[str, str]:
    """Version by name of all that an image holds."""
    text = (LOCKS / f"{role}.txt").read_text("utf-8")
    rows = [Requirement(row) for row in re.findall(r"(?m)^([^\s#][^\\\n]*)", text)]
    environment = {**default_environment(), **IMAGE}
    return {
        row.name: str(row.specifier).removeprefix("==")
        for row in rows
        if row.marker is None or row.marker.evaluate(environment)
    }


def licence(found: Distribution) -> str:
    """SPDX expression of a distribution; raises LookupError where none is known."""
    told = found.metadata
    classified = [c.split(" :: ")[-1] for c in told.get_all("Classifier", []) if "License" in c]
    said = told.get("License-Expression") or told.get("License") or " AND ".join(classified)
    known = SPDX.get(said, said)
    if not re.fullmatch(r"[A-Za-z0-9.-]+( (AND|OR|WITH) [A-Za-z0-9.-]+)*", known):
        raise LookupError(f"licence of {told['Name']}: {said!r} has no SPDX expression here")
    return known


@lru_cache(maxsize=1)
def distributions() -> list[str]:
    """Rows of the first table; raises LookupError where this environment is not the locked one."""
    of = {role: shipped(role) for role in ROLES}
    rows = []
    for name, version in sorted({**of["node-agent"], **of["control-plane"]}.items()):
        try:
            found = distribution(name)
        except PackageNotFoundError as error:
            raise LookupError(f"{name}: not installed; make install") from error
        if found.version != version:
            raise LookupError(
                f"{name}: {found.version} is installed, {version} locked; make install"
            )
        held = " | ".join("x" if name in of[role] else "" for role in ROLES)
        rows.append(f"| `{name}` | {version} | {licence(found)} | {held} |")
    return rows


@lru_cache(maxsize=1)
def files() -> list[str]:
    """Rows of the second table: static files that others wrote."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")
    django.setup()
    about = import_module("hami_web.dashboard.about_page")  # needs Django set up
    return [
        f"| `{sent.name}` | {sent.origin} | {sent.licence} | `{sent.sha256}` |"
        for sent in about.sent_files()
        if sent.origin != "hami-web"
    ]


def rewritten(text: str) -> str:
    """The document with both tables made anew under the heads that it has."""
    made = iter((distributions(), files()))

    def table(match: re.Match[str]) -> str:
        head = match[0].splitlines()[:2]
        return "\n".join([*head, *next(made)]) + "\n"

    return _TABLE.sub(table, text, count=2)


def stale() -> list[str]:
    """Documents that locks and files have left behind."""
    return [
        str(path.relative_to(ROOT))
        for path in DOCUMENTS
        if rewritten(path.read_text("utf-8")) != path.read_text("utf-8")
    ]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"make docs would change: {', '.join(stale())}" if stale() else 0)
    for document in DOCUMENTS:
        document.write_text(rewritten(document.read_text("utf-8")), encoding="utf-8")
