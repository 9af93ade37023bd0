"""``python -m tests.scheduling.soak --pods 10000``: the long run; 1 if anything is left."""

from __future__ import annotations

import argparse
import sys

from tests.scheduling.soak.soak import Soak


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000, help="Pods in all (%(default)s)")
    parser.add_argument("--width", type=int, default=12, help="Pods at once (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of every choice (%(default)s)")
    options = parser.parse_args()
    report = Soak(options.pods, width=options.width, seed=options.seed).run()
    print(
        f"{report.created} Pods in {report.seconds:.0f} s, {report.finished} ran to their end, "
        f"{report.deleted_early} deleted early, {report.kills} programs killed"
    )
    for name, (before, after) in sorted(report.usage.items()):
        print(
            f"{name}: memory {before.memory_mib:.0f} to {after.memory_mib:.0f} MiB, threads "
            f"{before.threads} to {after.threads}, open files {before.files} to {after.files}"
        )
    left = {what: found for what, found in report.left.items() if found}
    print(f"left: {left or 'nothing'}")
    return 1 if left or report.grown() else 0


if __name__ == "__main__":
    sys.exit(main())
