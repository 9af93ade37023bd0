"""The command line: verbs, their arguments, and what each is for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from hami_web.kubectl import verbs
from hami_web.kubectl.completion import SHELLS
from hami_web.kubectl.wording import noted, tr

FORMATS: Final = ("table", "json", "yaml", "wide")
COUNT_MAX: Final = 100


def build() -> argparse.ArgumentParser:
    """The whole parser; texts are in the language of the moment."""
    common = _common()
    parser = argparse.ArgumentParser(
        prog="kubectl hami",
        description=tr("MIG slices of a cluster: what there is, who has it, what would fit."),
        epilog=tr("Exit codes: 0 fits or all is well, 1 does not, 2 an error."),
        parents=[common],
    )
    commands = parser.add_subparsers(required=True, metavar=tr("VERB"))

    def verb(
        group: argparse._SubParsersAction[argparse.ArgumentParser],
        name: str,
        about: str,
        run: Callable[[verbs.Command], int],
    ) -> argparse.ArgumentParser:
        made = group.add_parser(name, help=tr(about), description=tr(about), parents=[common])
        made.set_defaults(run=run)
        return made

    _lists(commands, verb)
    verb(commands, "map", noted("draw the memory slices of every GPU"), verbs.show_map)
    why = verb(commands, "why", noted("say why a Pod waits, or where it is"), verbs.why)
    _completed(why, "pod", "POD", "pods")
    _what_if(verb(commands, "whatif", noted("say where Pods would go"), verbs.what_if))
    verb(commands, "drift", noted("list what is not as it should be"), verbs.drift)
    plans = _group(commands, "plan", noted("plan; nothing is changed"))
    drain = verb(plans, "drain", noted("the fewest Pods to move for placements"), verbs.drain)
    drain.add_argument("--profile", required=True, help=tr("a profile's name, as 3g.20gb"))
    drain.add_argument("--count", type=_count, default=1, help=tr("how many placements"))
    migrate = _group(commands, "migrate", noted("move from another set-up"))
    check = verb(migrate, "check", noted("check whether nodes can be taken over"), verbs.check)
    check.add_argument("--timeout", type=float, default=600, help=tr("seconds to wait"))
    complete = verb(commands, "completion", noted("print shell completion"), verbs.completion)
    complete.add_argument("shell", choices=SHELLS, help=tr("which shell"))
    return parser


def _lists(commands, verb) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    for name, about, listed, detailed, named in (
        ("node", noted("nodes with GPUs"), verbs.list_nodes, verbs.show_node, "nodes"),
        ("device", noted("GPUs"), verbs.list_devices, verbs.show_device, "devices"),
        (
            *("reservation", noted("reservations of Pods")),
            *(verbs.list_reservations, verbs.show_reservation, "pods"),
        ),
    ):
        group = _group(commands, name, about)
        verb(group, "list", noted("list them"), listed)
        detail = verb(group, "detail", noted("all that is known of one"), detailed)
        _completed(detail, "name", {"nodes": "NODE", "devices": "UUID"}.get(named, "POD"), named)


def _what_if(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", help=tr("a profile's name, as 3g.20gb"))
    parser.add_argument("--memory", type=_positive, metavar="MIB", help=tr("memory in MiB"))
    parser.add_argument("--memory-percent", type=_percent, help=tr("memory as a share of a GPU"))
    parser.add_argument("--cores", type=_percent, help=tr("the least share of a GPU's cores"))
    parser.add_argument("--devices", type=_count, default=1, help=tr("devices of each Pod"))
    parser.add_argument("--count", type=_count, default=1, help=tr("how many Pods"))


def _group(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, about: str
) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    made = commands.add_parser(name, help=tr(about), description=tr(about))
    return made.add_subparsers(required=True, metavar=tr("VERB"))


def _completed(parser: argparse.ArgumentParser, name: str, shown: str, names: str) -> None:
    action = parser.add_argument(name, metavar=shown, help=tr("its name"))
    action.completes = names  # type: ignore[attr-defined]


def _common() -> argparse.ArgumentParser:
    """Options that may stand before or after the verb."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    add = common.add_argument
    add("--server", metavar="URL", help=tr("the web service; HAMI_SERVER otherwise"))
    add("--token", help=tr("an API token; HAMI_TOKEN otherwise"))
    add("--token-file", metavar="FILE", help=tr("a file with the token; HAMI_TOKEN_FILE otherwise"))
    add("--ca-file", metavar="FILE", help=tr("certificates that the web service is verified by"))
    add("--offline", action="store_true", help=tr("read annotations only, never the web service"))
    add("--kubeconfig", metavar="FILE", help=tr("a kubeconfig; KUBECONFIG otherwise"))
    add("--context", help=tr("a context of the kubeconfig"))
    namespace = add("-n", "--namespace", help=tr("the context's namespace otherwise"))
    namespace.completes = "namespaces"  # type: ignore[attr-defined]
    add("-A", "--all-namespaces", action="store_true", help=tr("all namespaces"))
    add("-o", "--output", choices=FORMATS, help=tr("how to write the answer"))
    add("--no-color", action="store_true", help=tr("no colours; NO_COLOR has the same effect"))
    return common


def _count(text: str) -> int:
    return _between(text, 1, COUNT_MAX)


def _percent(text: str) -> int:
    return _between(text, 1, 100)


def _positive(text: str) -> int:
    return _between(text, 1, 2**31)


def _between(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
        allowed = f"{least}…{most}"
        message = tr("{value} is not allowed; allowed: {allowed}")
        raise argparse.ArgumentTypeError(message.format(value=text, allowed=allowed))
    return int(text)
