"""Celery's queue of files, with messages that appear whole.

kombu opens a message's file under the name that readers look for and writes it afterwards: a reader
in between takes an empty message, whose decoding ends the worker. Here it is written first and
renamed, which is atomic within a folder.
"""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.encoding import str_to_bytes
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """Puts messages by renaming."""

    def _put(self, queue: str, payload: dict[str, Any], **_options: Any) -> None:  # type: ignore[override]
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        folder = Path(self.data_folder_out)
        draft = folder / f".{name}.draft"
        try:
            draft.write_bytes(str_to_bytes(dumps(payload)))
            os.replace(draft, folder / name)
        except OSError as error:
            raise ChannelError(f"the queue's folder {folder}: {error}") from error


class Transport(filesystem.Transport):
    """As kombu's."""

    Channel = Channel
