"""``python -m tests.benchmarks.dashboard``: a map of 2,000 GPUs, also in Chromium; 200 of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.dashboard import in_chromium, open_pages
from tests.benchmarks.report import Report

ENVIRONMENT = {
    "HAMI_ANONYMOUS_ROLE": "viewer",
    "HAMI_ANONYMOUS_NAMESPACES": "*",
    "HAMI_ALLOWED_HOSTS": "localhost",
    "HAMI_LOG_LEVEL": "ERROR",
}


def main() -> int:
    """Print what was measured and the goals."""
    report = Report()
    report.progress("rendering 2,000 GPUs")
    with tempfile.TemporaryDirectory(prefix="hami-dashboard-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.dashboard.page"],
            env={**os.environ, **ENVIRONMENT, "HAMI_DATA_DIR": folder},
            check=True,
            stdout=subprocess.PIPE,
        )
    found = json.loads(done.stdout)
    report.table(
        f"map: {found['page'] * 1e3:.0f} ms, {found['bytes'] / 1e6:.1f} MB, "
        f"{found['gzipped'] / 1e3:.0f} kB compressed; bare strings {found['bare'] * 1e3:.0f} ms"
    )
    report.at_most("map-over-bare-strings", found["page"] / found["bare"], 3)
    report.at_most("map-compressed-kb", found["gzipped"] / 1e3, 120)
    report.at_most("change-moves-kb", found["moved"] / 1e3, 5)
    report.at_most("change-touches-other-gpus", len(set(found["changed"]) - {found["of"]}), 0)
    with tempfile.TemporaryDirectory(prefix="hami-dashboard-") as folder:
        in_chromium.measure(report, {**ENVIRONMENT, "HAMI_DATA_DIR": folder})
    with tempfile.TemporaryDirectory(prefix="hami-dashboard-") as folder:
        open_pages.measure(report, Path(folder) / "open")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
