"""``python -m tests.benchmarks.dashboard.site PORT``: a dashboard of 2,000 given GPUs."""

from __future__ import annotations

import os
import sys
from typing import Final

import django
import uvicorn

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")
django.setup()

# isort: split
from django.core.asgi import get_asgi_application  # noqa: E402  # Django must be set up first

from hami_web.dashboard import installed  # noqa: E402
from tests.dashboard.given import GivenMap  # noqa: E402
from tests.dashboard.large import large_map  # noqa: E402

GPUS: Final = 2_000


def main() -> None:
    """Serve until the process is ended."""
    live = GivenMap()
    live.show(large_map(GPUS))
    installed.install_map(live)
    port = int(sys.argv[1])
    uvicorn.run(get_asgi_application(), port=port, lifespan="off", log_config=None)


if __name__ == "__main__":
    main()
