"""List and watch for the simulated scheduler and kubelets."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Callable

import msgspec

from hami_web.simulator.client import ApiClient, ApiError, Watch
from hami_web.simulator.documents import JsonObject, key_of, metadata

logger = logging.getLogger(__name__)

Handler = Callable[[JsonObject | None, JsonObject | None], None]
"""Called with (old, new): (None, new) for an addition, (old, None) for a deletion."""

_PAUSE_AFTER_ERROR = 0.1
_WATCH_SECONDS = "300"


class Reflector:
    """A copy of one kind's objects; ``handler`` is called on the reflector's own thread."""

    def __init__(
        self, client: ApiClient, path: str, handler: Handler, *, field_selector: str = ""
    ) -> None:
        self._client = client
        self._path = path
        self._handler = handler
        self._params = {"fieldSelector": field_selector} if field_selector else {}
        self._objects: dict[tuple[str, str], JsonObject] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=f"reflect {path}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the watch and wait for the thread."""
        self._stopping.set()
        with self._lock:
            watch = self._watch
        if watch is not None:
            watch.interrupt()
        self._thread.join()

    def wait_until_synced(self, timeout: float) -> bool:
        """The first list is complete."""
        return self._synced.wait(timeout)

    def objects(self) -> list[JsonObject]:
        """What is known now, in no order."""
        with self._lock:
            return list(self._objects.values())

    def get(self, key: tuple[str, str]) -> JsonObject | None:
        with self._lock:
            return self._objects.get(key)

    def _run(self) -> None:
        version = ""
        while not self._stopping.is_set():
            try:
                if not version:
                    version = self._list()
                version = self._follow(version)
            except ApiError as error:
                version = "" if error.code == 410 else version
                self._stopping.wait(_PAUSE_AFTER_ERROR)
            except (OSError, http.client.HTTPException, msgspec.DecodeError):
                self._stopping.wait(_PAUSE_AFTER_ERROR)
            except Exception:
                logger.exception("the reflector of %s starts over", self._path)
                version = ""
                self._stopping.wait(_PAUSE_AFTER_ERROR)

    def _list(self) -> str:
        listed = self._client.get(self._path, self._params)
        found = {key_of(item): item for item in listed["items"]}
        with self._lock:
            known = dict(self._objects)
        for key in known.keys() - found.keys():
            self._put(key, None)
        for key, item in found.items():
            if known.get(key) != item:
                self._put(key, item)
        self._synced.set()
        return str(listed["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> str:
        """Take in the events after ``version``; returns the version that was reached."""
        asked = {"resourceVersion": version, "timeoutSeconds": _WATCH_SECONDS}
        watch = self._client.watch(self._path, self._params | asked)
        with self._lock:
            self._watch = watch
        try:
            if self._stopping.is_set():
                return version
            for event in watch:
                item = event["object"]
                if event["type"] == "ERROR":
                    raise ApiError(int(item.get("code") or 0), "", str(item.get("message")))
                version = str(metadata(item)["resourceVersion"])
                self._put(key_of(item), None if event["type"] == "DELETED" else item)
        finally:
            with self._lock:
                self._watch = None
            watch.close()
        return version

    def _put(self, key: tuple[str, str], item: JsonObject | None) -> None:
        with self._lock:
            old = self._objects.pop(key, None)
            if item is not None:
                self._objects[key] = item
        self._handler(old, item)
