"""Runs a command that ends with the process that started it, however that one ends.

``python -m hami_web.simulator.demo_child PARENT_PID COMMAND...``: asks the kernel (Linux,
``prctl(2)`` PR_SET_PDEATHSIG, which survives ``execve``) for SIGKILL at the parent's death, then
becomes the command.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the command, unless the parent is gone already."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        sys.exit(f"demo: prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("demo: the parent process is gone")
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
