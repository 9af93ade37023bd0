"""What this is: version, parts, documents, and every file that is sent to browsers."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import django
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from hami_web.access.declared import needs
from hami_web.access.roles import Verb
from hami_web.dashboard.pages import respond
from hami_web.dashboard.seen import seen_map

DISTRIBUTION: Final = "hami-web"
ORIGINS: Final[tuple[tuple[str, str, str], ...]] = (
    ("dashboard/", "hami-web", "Apache-2.0"),
    ("drf_spectacular_sidecar/swagger-ui-dist/", "Swagger UI", "Apache-2.0"),
    ("drf_spectacular_sidecar/redoc/", "Redoc", "MIT"),
    # Not used by any page here; the package of Django REST framework brings them along.
    ("rest_framework/css/bootstrap-tweaks.css", "Django REST framework", "BSD-3-Clause"),
    ("rest_framework/css/bootstrap", "Bootstrap", "MIT"),
    ("rest_framework/js/bootstrap", "Bootstrap", "MIT"),
    ("rest_framework/fonts/glyphicons", "Bootstrap", "MIT"),
    ("rest_framework/img/glyphicons", "Bootstrap", "MIT"),
    ("rest_framework/css/font-awesome", "Font Awesome", "MIT"),
    ("rest_framework/fonts/fontawesome", "Font Awesome", "OFL-1.1"),
    ("rest_framework/js/jquery", "jQuery", "MIT"),
    ("rest_framework/css/prettify", "google-code-prettify", "Apache-2.0"),
    ("rest_framework/js/prettify", "google-code-prettify", "Apache-2.0"),
    ("rest_framework/", "Django REST framework", "BSD-3-Clause"),
)
"""Origin and licence by beginning of the name; the first that fits."""
UNKNOWN: Final = ("?", "?")


@dataclass(frozen=True, slots=True)
class SentFile:
    """A static file as it lies on the disk."""

    name: str
    origin: str
    licence: str
    bytes: int
    sha256: str


@needs(Verb.READ)
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Read from the disk once in a process."""
    context = {
        "version": own_version(),
        "parts": [("Python", platform.python_version()), ("Django", django.get_version())],
        "documents": sorted(documents()),
        "files": sent_files(),
    }
    return respond(request, "dashboard/about.html", context, current=seen_map(request))


@needs(Verb.READ)
@require_safe
def document(_request: HttpRequest, name: str) -> HttpResponse:
    """One document as it was written, as text."""
    path = documents().get(name)
    if path is None:
        raise Http404(f"no document {name}")
    return HttpResponse(path.read_bytes(), content_type="text/plain; charset=utf-8")


def own_version() -> str:
    """Of the installed package, or a dash where it runs from a folder."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "\N{EN DASH}"


def documents() -> dict[str, Path]:
    """The documents that came along, by name; none where only the program was installed."""
    found = (settings.BASE_DIR / "docs").glob("*.md")
    return {path.stem: path for path in found}


@lru_cache(maxsize=1)
def sent_files() -> tuple[SentFile, ...]:
    """Every static file by name; maps of sources are left out, which only debuggers ask for."""
    found = {
        name: Path(storage.path(name))
        for finder in get_finders()
        for name, storage in finder.list(["*.map", ".*"])
    }
    return tuple(_sent(name, found[name]) for name in sorted(found))


def _sent(name: str, path: Path) -> SentFile:
    origin, licence = next((rest for start, *rest in ORIGINS if name.startswith(start)), UNKNOWN)
    body = path.read_bytes()
    return SentFile(name, origin, licence, len(body), sha256(body).hexdigest())
