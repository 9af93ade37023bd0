"""The kubelets of the suite's cluster: the one that comes with it, and a second one.

The second has a container runtime of its own. The first one's programs are started again with the
first one's arguments, in mount and process namespaces where every folder that they write to is
another one. Some of these are constants of the kubelet (the device-plugin folder, the folder of
logs), and a kubelet kills what it finds in its runtime without knowing it. With the namespaces'
first process everything in them ends.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tests.cluster.processes import Process, free_port, wait_until

KUBELET = Path("/var/lib/kubelet")
POD_LOGS = Path("/var/log/pods")
SOCKET = Path("/run/hami-containerd/containerd.sock")
BRIDGE = "hami1"
SUBNET = ("10.244.77.", "10.244.78.")
CGROUPS = Path("/sys/fs/cgroup")
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


class Kubelet(Protocol):
    """What the suite needs to know of a node's kubelet."""

    @property
    def plugins(self) -> Path:
        """Its device-plugin folder."""

    @property
    def pod_logs(self) -> Path:
        """Where it keeps what containers print."""

    def restart(self) -> None: ...


class FirstKubelet:
    """The one that came with the cluster that runs from ``first``."""

    plugins = KUBELET / "device-plugins"
    pod_logs = POD_LOGS

    def __init__(self, first: Path) -> None:
        self._first = first

    def kill(self) -> None:
        """Without a word; ``restart`` brings another one."""
        pid = int((self._first / "pid" / "kubelet").read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until("it is dead", lambda: pid not in _processes("kubelet"))

    def restart(self) -> None:
        subprocess.run([self._first / "restart-kubelet"], check=True, timeout=60)


class SecondKubelet:
    """Node ``name`` of the cluster that runs from ``first``; its files lie in ``folder``."""

    def __init__(self, name: str, first: Path, folder: Path) -> None:
        self._first = first
        self._folder = folder
        self._cgroup = f"hami-{name}"
        self._name = name
        self._process: Process | None = None

    @property
    def plugins(self) -> Path:
        """Its device-plugin folder, as seen from outside."""
        return self._outside(KUBELET) / "device-plugins"

    @property
    def pod_logs(self) -> Path:
        return self._outside(POD_LOGS)

    def start(self) -> None:
        """Start it; the node is there some seconds later."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write_network()
        for controller in _controllers():
            (controller / self._cgroup).mkdir(exist_ok=True)
        script = self._folder / "start"
        script.write_text(self._script())
        self._process = Process(
            f"kubelet of {self._name}",
            [*NAMESPACES, "bash", str(script)],
            _environment(self._pid_of("kubelet")),
            self._folder / "kubelet.log",
        )
        self._process.start()

    def stop(self) -> None:
        """End it with all its containers, and remove what they left outside of its folder."""
        if self._process is None:
            return
        self._process.stop(signal.SIGKILL)
        self._process = None
        subprocess.run(["ip", "link", "delete", BRIDGE], check=False, capture_output=True)
        for controller in _controllers():
            wait_until("its cgroups are empty", lambda c=controller: self._is_removed(c), 30)

    def restart(self) -> None:
        """Kill it alone; its supervisor, which here is a loop, starts it again."""
        own = f"--hostname-override={self._name}"
        (pid,) = (pid for pid in _processes("kubelet") if own in _arguments(pid))
        os.kill(pid, signal.SIGTERM)
        wait_until("it has ended", lambda: pid not in _processes("kubelet"), 30)

    def tail(self) -> str:
        return "" if self._process is None else self._process.tail()

    def _is_removed(self, controller: Path) -> bool:
        folders = sorted((controller / self._cgroup).rglob("*/"), reverse=True)
        try:
            for folder in [*folders, controller / self._cgroup]:
                if folder.is_dir():
                    folder.rmdir()
        except OSError:  # its processes have not all ended yet
            return False
        return True

    def _write_network(self) -> None:
        """The first one's network with another bridge and other addresses."""
        (first,) = (self._first / "cni").iterdir()
        text = first.read_text()
        assert SUBNET[0] in text
        own = self._outside(self._first / "cni")
        own.mkdir(parents=True, exist_ok=True)
        (own / first.name).write_text(text.replace(*SUBNET).replace("hami0", BRIDGE))

    def _script(self) -> str:
        inside = [
            KUBELET,
            POD_LOGS,
            POD_LOGS.with_name("containers"),
            SOCKET.parent,
            Path("/run/containerd"),
            Path("/run/netns"),
            Path("/var/lib/cni"),
            self._first / "cni",
            self._first / "containerd",
        ]
        lines = ["set -e"]
        for path in inside:
            self._outside(path).mkdir(parents=True, exist_ok=True)
            path.mkdir(parents=True, exist_ok=True)
            lines.append(shlex.join(["mount", "--bind", str(self._outside(path)), str(path)]))
        runtime = _arguments(self._pid_of("containerd"))
        image = ["ctr", "-a", str(SOCKET), "-n", "k8s.io", "images", "import"]
        kubelet = [
            *_arguments(self._pid_of("kubelet")),
            f"--hostname-override={self._name}",
            f"--cgroup-root=/{self._cgroup}",
            f"--port={free_port()}",
            f"--healthz-port={free_port()}",
        ]
        lines += [
            f"cd {shlex.quote(str(self._first))}",
            f"{shlex.join(runtime)} &",
            f"until ctr -a {SOCKET} version >/dev/null 2>&1; do sleep 0.1; done",
            shlex.join([*image, str(self._first / "pause.tar")]),
            f"while :; do {shlex.join(kubelet)} || true; sleep 0.2; done",
        ]
        return "\n".join(lines) + "\n"

    def _outside(self, path: Path) -> Path:
        return self._folder / str(path).strip("/").replace("/", "-")

    def _pid_of(self, program: str) -> int:
        return int((self._first / "pid" / program).read_text())


def _controllers() -> list[Path]:
    """Where control groups are made: one tree for each controller, or one for all (version 2)."""
    return [CGROUPS] if (CGROUPS / "cgroup.controllers").exists() else list(CGROUPS.iterdir())


def _processes(program: str) -> list[int]:
    """Ids of the processes of this name that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it has just ended
            if path.read_text().strip() == program and path.with_name("cmdline").read_bytes():
                found.append(int(path.parent.name))
    return found


def _arguments(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]


def _environment(pid: int) -> dict[str, str]:
    found = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    wanted = dict(item.split("=", 1) for item in found if item)
    return {name: wanted[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in wanted}
