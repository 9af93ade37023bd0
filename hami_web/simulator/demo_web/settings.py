"""Settings of the demo's web process: those of the product, and the story around its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hami_web import settings as product
from hami_web.settings import *  # noqa: F403

_HERE = Path(__file__).resolve().parent
_ENGINE: dict[str, Any] = product.TEMPLATES[0]
_OPTIONS: dict[str, Any] = _ENGINE["OPTIONS"]

ROOT_URLCONF = "hami_web.simulator.demo_web.urls"
# Before the product's: its base.html is extended by one of the same name.
TEMPLATES = [
    {
        **_ENGINE,
        "DIRS": [_HERE / "templates", *_ENGINE["DIRS"]],
        "OPTIONS": {
            **_OPTIONS,
            "context_processors": [
                *_OPTIONS["context_processors"],
                "hami_web.simulator.demo_web.banner.shown",
            ],
        },
    }
]
STATICFILES_DIRS = [*product.STATICFILES_DIRS, _HERE / "static"]
