"""What the commands share: who runs them."""

from __future__ import annotations

import getpass
import socket

from hami_web.access.audit import Actor
from hami_web.access.caller import Source


def command_actor() -> Actor:
    """The account of the operating system that runs the command, and its machine."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # an account without a name
        name = "unknown"
    return Actor(name, Source.COMMAND, address=socket.gethostname()[:64])
