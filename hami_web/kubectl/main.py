"""``kubectl hami``: reads the environment, runs a verb, and ends with its code."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from hami_web.kubectl import completion
from hami_web.kubectl.kubeconfig import kubeconfig_path, namespace_of
from hami_web.kubectl.parser import build
from hami_web.kubectl.rest import RestSource, Server
from hami_web.kubectl.source import CommandFailed, Source, Unserved
from hami_web.kubectl.verbs import Command
from hami_web.kubectl.wording import use_language

ERROR: Final = 2
COMPLETE: Final = "__complete"


def main() -> None:
    """The ``kubectl-hami`` of the PATH."""
    sys.exit(run(sys.argv[1:]))


def complete_main() -> None:
    """The ``kubectl_complete-hami`` that kubectl calls for completion."""
    sys.exit(run([COMPLETE, *sys.argv[1:]]))


def run(words: Sequence[str]) -> int:
    """Run one command line; the exit code."""
    use_language(os.environ)
    parser = build()
    if words and words[0] == COMPLETE:
        return _complete(parser, words[1:])
    args = parser.parse_args(words)
    sources = Sources(args)
    try:
        return int(args.run(_command(args, sources)))
    except CommandFailed as error:
        _tell(f"kubectl hami: {error}")
        return ERROR
    except BrokenPipeError:
        # Whoever read our lines had enough of them; nothing is left to flush at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR


class Sources:
    """The web service where one is named and answers, else annotations."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.kubeconfig = kubeconfig_path(getattr(args, "kubeconfig", ""), os.environ)
        self.context = str(getattr(args, "context", ""))

    def ask(self, question: Callable[[Source], object]) -> object:
        """Ask the web service; where it does not answer, say so and read annotations."""
        server = "" if hasattr(self._args, "offline") else self._given("server", "HAMI_SERVER")
        if server:
            try:
                return question(RestSource(self._server(server)))
            except Unserved as error:
                _tell(f"kubectl hami: {error}")
        return self._from_annotations(question)

    def _from_annotations(self, question: Callable[[Source], object]) -> object:
        # Only who needs it waits for the Kubernetes client: it takes over a second to import.
        from hami_web.cluster.client import OfficialConnection  # noqa: PLC0415
        from hami_web.cluster.errors import ClusterError  # noqa: PLC0415
        from hami_web.cluster.transport import Transport  # noqa: PLC0415
        from hami_web.kubectl.offline import AnnotationSource  # noqa: PLC0415

        try:
            connection = OfficialConnection(self.kubeconfig, context=self.context or None)
        except ClusterError as error:
            raise CommandFailed(str(error)) from error
        with closing(connection):
            source = AnnotationSource(Transport(connection, user_agent="kubectl-hami"))
            answer = question(source)
            _tell(f"kubectl hami: {source.note}")
        return answer

    def _server(self, url: str) -> Server:
        token = self._given("token", "HAMI_TOKEN")
        file = self._given("token_file", "HAMI_TOKEN_FILE")
        if file and not getattr(self._args, "token", ""):
            try:
                token = Path(file).read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise CommandFailed(f"{file}: {error}") from error
        ca = self._given("ca_file", "HAMI_CA_FILE")
        return Server(url, token, Path(ca) if ca else None)

    def _given(self, name: str, variable: str) -> str:
        return str(getattr(self._args, name, "") or os.environ.get(variable, ""))


def _command(args: argparse.Namespace, sources: Sources) -> Command:
    plain = hasattr(args, "no_color") or bool(os.environ.get("NO_COLOR"))

    def namespace() -> str:
        given = getattr(args, "namespace", "")
        return str(given or namespace_of(sources.kubeconfig, sources.context))

    return Command(
        args,
        sources.ask,
        _write,
        _tell,
        namespace,
        width=shutil.get_terminal_size((120, 24)).columns,
        colour=sys.stdout.isatty() and not plain,
    )


def _complete(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    def names(kind: str) -> Sequence[str]:
        args, _ = _quietly(words)
        try:
            return _names(Sources(args), kind)
        except CommandFailed:
            return ()

    for line in completion.lines(completion.candidates(parser, words, names)):
        _write(line)
    return 0


def _quietly(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options that tell whom to ask, of a line that is not finished."""
    parser = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    for name in ("server", "token", "token-file", "ca-file", "kubeconfig", "context", "namespace"):
        parser.add_argument(f"--{name}", nargs="?", default=argparse.SUPPRESS)
    parser.add_argument("--offline", action="store_true")
    return parser.parse_known_args(list(words))


def _names(sources: Sources, kind: str) -> Sequence[str]:
    def ask(source: Source) -> object:
        if kind == "nodes":
            return [node.name for node in source.nodes()]
        if kind == "devices":
            return [gpu.uuid for gpu in source.devices()]
        found = source.reservations(None)
        if kind == "namespaces":
            return sorted({item.namespace for item in found})
        return sorted({f"{item.namespace}/{item.pod}" for item in found})

    answer = sources.ask(ask)
    return [str(name) for name in answer] if isinstance(answer, list) else []


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
