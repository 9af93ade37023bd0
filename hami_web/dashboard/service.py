"""The web role's life: watch the cluster while the server runs, and hand requests to Django."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from hami_web.dashboard.installed import install_map, install_notices, install_problem
from hami_web.dashboard.live import LiveMap
from hami_web.dashboard.reader import ClusterReader
from hami_web.dashboard.sub_path import Application, Message, Receive, Send
from hami_web.inventory.standing import watch_database


class WorkerWatch(Protocol):
    """Looks whether the worker works, and says in words what does not."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def notices(self) -> list[str]: ...


class WebService:
    """An ASGI application with a lifespan around Django's."""

    def __init__(
        self,
        application: Application,
        *,
        kubeconfig: Path | None,
        pool_labels: Sequence[str],
        worker: WorkerWatch,
    ) -> None:
        self._application = application
        self._kubeconfig = kubeconfig
        self._pool_labels = pool_labels
        self._worker = worker

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._application(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        watch = ClusterWatch(self._kubeconfig, self._pool_labels)
        watch.start()
        database = watch_database()
        database.start()
        install_problem(lambda: database.problem or watch.reader.problem())
        install_notices(self._worker.notices)
        self._worker.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._worker.stop()
        database.stop()
        watch.stop()
        await send({"type": "lifespan.shutdown.complete"})


class ClusterWatch:
    """A reader and the live map it feeds, installed as the process's own."""

    def __init__(self, kubeconfig: Path | None, pool_labels: Sequence[str] = ()) -> None:
        self.reader = ClusterReader(kubeconfig, pool_labels)
        self.live = LiveMap(self.reader.draw, self.reader.freshness)

    def start(self) -> None:
        """Begin to watch and to draw."""
        install_map(self.live)
        self.live.start()
        self.reader.start(self.live.mark_changed)

    def stop(self) -> None:
        """End the streams, then the watches."""
        self.live.close()
        self.reader.stop()
