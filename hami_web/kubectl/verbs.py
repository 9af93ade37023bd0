"""What each verb asks, writes and ends with."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from hami_web.kubectl import checks, completion_scripts, drawing, shapes, tables
from hami_web.kubectl.rest import RestSource
from hami_web.kubectl.source import CommandFailed, Source, WhatIfQuestion
from hami_web.kubectl.wording import OUTCOMES, reason, tr

FITS: Final = 0
DOES_NOT: Final = 1
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Command:
    """One call: its arguments, whom to ask, and where lines go.

    ``ask`` runs a question, at first against the web service, then against annotations.
    """

    args: argparse.Namespace
    ask: Callable[[Callable[[Source], object]], object]
    write: Callable[[str], object]
    tell: Callable[[str], object]
    namespace: Callable[[], str]
    width: int
    colour: bool

    @property
    def format(self) -> str:
        """table, wide, json or yaml."""
        return str(getattr(self.args, "output", "table"))

    def answer(self, question: Callable[[Source], _Answer]) -> _Answer:
        """The answer to a question."""
        return self.ask(question)  # type: ignore[return-value]

    def show(self, answer: object, lines: Callable[[], Iterable[str]]) -> None:
        """Write an answer in the format that was asked for."""
        if self.format == "json":
            self.write(tables.as_json(answer))
        elif self.format == "yaml":
            self.write(tables.as_yaml(answer))
        else:
            for line in lines():
                self.write(line)

    def rows(self, columns: Sequence[tables.Column[_Answer]], rows: Sequence[_Answer]) -> None:
        """Write rows."""
        self.show(rows, lambda: tables.table(columns, rows, wide=self.format == "wide"))

    def fields(self, answer: object) -> None:
        """Write all that is known of one object."""
        self.show(answer, lambda: tables.as_yaml(answer).splitlines())


def list_nodes(command: Command) -> int:
    """``node list``."""
    command.rows(tables.NODES, command.answer(lambda source: source.nodes()))
    return FITS


def show_node(command: Command) -> int:
    """``node detail``."""
    found = command.answer(lambda source: source.nodes())
    command.fields(_one(found, [node.name for node in found], command.args.name))
    return FITS


def list_devices(command: Command) -> int:
    """``device list``."""
    command.rows(tables.DEVICES, command.answer(lambda source: source.devices()))
    return FITS


def show_device(command: Command) -> int:
    """``device detail``."""
    found = command.answer(lambda source: source.devices())
    command.fields(_one(found, [gpu.uuid for gpu in found], command.args.name))
    return FITS


def list_reservations(command: Command) -> int:
    """``reservation list``."""
    namespace = None if getattr(command.args, "all_namespaces", False) else command.namespace()
    command.rows(tables.RESERVATIONS, command.answer(lambda s: s.reservations(namespace)))
    return FITS


def show_reservation(command: Command) -> int:
    """``reservation detail``: all devices of one Pod."""
    namespace, pod = _pod(command, command.args.name)
    found = command.answer(lambda source: source.reservations(namespace))
    own = [item for item in found if item.pod == pod]
    if not own:
        raise CommandFailed(tr("{name} is not known").format(name=f"{namespace}/{pod}"))
    command.fields(own)
    return FITS


def show_map(command: Command) -> int:
    """``map``."""
    found = command.answer(lambda source: source.cluster_map())
    command.show(found, lambda: drawing.draw(found, width=command.width, colour=command.colour))
    return FITS


def why(command: Command) -> int:
    """``why``: the newest word first; 1 where the Pod has no place."""
    namespace, pod = _pod(command, command.args.pod)
    said = command.answer(lambda source: source.why(namespace, pod))
    if not said:
        raise CommandFailed(tr("nothing was said of {name}").format(name=f"{namespace}/{pod}"))
    command.show(said, lambda: (line for item in said for line in _said(item)))
    return FITS if said[0].outcome in ("held", "bound") else DOES_NOT


def what_if(command: Command) -> int:
    """``whatif``: 1 where not all Pods fit."""
    args = command.args
    question = WhatIfQuestion(
        devices=args.devices,
        profile=args.profile,
        memory_mib=args.memory,
        memory_percent=args.memory_percent,
        cores=args.cores,
        count=args.count,
    )
    found = command.answer(lambda source: source.what_if(question))
    command.show(found, lambda: _placed(found))
    return FITS if found.fits else DOES_NOT


def drain(command: Command) -> int:
    """``plan drain``: 1 where no plan is possible."""
    args = command.args
    found = command.answer(lambda source: source.drain_plan(args.profile, args.count))
    command.show(found, lambda: _plan(found))
    return FITS if found.possible else DOES_NOT


def drift(command: Command) -> int:
    """``drift``: 1 where there is any."""
    found = command.answer(lambda source: list(_drift(source)))
    command.rows(tables.DRIFT, found)
    return DOES_NOT if found else FITS


def check(command: Command) -> int:
    """``migrate check``: 1 where a node cannot be taken over."""

    def ask(source: Source) -> checks.Report:
        if not isinstance(source, RestSource):
            raise CommandFailed(tr("a check needs the web service and its worker: --server"))
        return checks.check(source, tell, timeout_s=command.args.timeout)

    def tell(run: checks.Run) -> None:
        command.tell(f"{run.state}: {run.part} {run.parts_done}/{run.parts or '?'}")

    found = command.answer(ask)
    command.show(found, lambda: _report(found))
    return FITS if found.is_ready else DOES_NOT


def completion(command: Command) -> int:
    """``completion``: a script for a shell."""
    command.write(completion_scripts.SCRIPTS[command.args.shell])
    return FITS


def _pod(command: Command, text: str) -> tuple[str, str]:
    namespace, _, name = text.rpartition("/")
    return namespace or command.namespace(), name


def _one(found: Sequence[_Answer], names: Sequence[str], wanted: str) -> _Answer:
    if wanted not in names:
        raise CommandFailed(tr("{name} is not known").format(name=wanted))
    return found[names.index(wanted)]


def _said(item: shapes.Why) -> Iterator[str]:
    words = tr(OUTCOMES[item.outcome]) if item.outcome in OUTCOMES else item.outcome
    place = f" → {item.node}" if item.node else ""
    yield f"{item.last_at} {item.said_by}: {words}{place}".strip()
    if item.message:
        yield f"  {item.message}"
    told = item.explanation
    for code, count in (told.reasons if told else {}).items():
        yield "  " + tr("{count} nodes: {reason}").format(count=count, reason=reason(code))
    if told is not None and told.nearest is not None:
        yield f"  {told.nearest.text}"


def _placed(found: shapes.WhatIf) -> Iterator[str]:
    for number, item in enumerate(found.placed, 1):
        for place in item.devices:
            where = f"{item.node}  {place.gpu_uuid}  {place.profile}  {place.start}:{place.size}"
            yield f"{number}  {where}"
    if found.obstacle is None:
        return
    yield tr("the next Pod does not fit")
    for item_ in found.obstacle.reasons:
        yield "  " + tr("{count} nodes: {reason}").format(
            count=item_.nodes, reason=reason(item_.code)
        )
    blockers = found.obstacle.blockers
    if blockers is not None:
        yield "  " + tr("in the way on {node} {gpu}:").format(
            node=blockers.node, gpu=blockers.gpu_uuid
        )
        for each in blockers.reservations:
            yield f"    {each.namespace}/{each.pod}  {each.profile}  {each.start}:{each.size}"
    smaller = found.obstacle.smaller
    if smaller is not None:
        yield "  " + tr("{profile} would fit on {node}").format(
            profile=smaller.profile, node=smaller.node
        )


def _plan(found: shapes.DrainPlan) -> Iterator[str]:
    yield tr("{free} placements of {profile} are free as it is").format(
        free=found.free, profile=found.profile
    )
    if not found.possible:
        yield tr("no moves that are allowed are enough")
        return
    for move in found.moves:
        home = move.homes[0].node if move.homes else tr("no other place")
        yield f"{move.namespace}/{move.pod}: {move.node} → {home}"
    yield from found.commands


def _report(found: checks.Report) -> Iterator[str]:
    for node in found.nodes:
        yield f"{node.node}: {node.readiness}"
    for item in found.findings:
        yield f"{item.node} {item.severity} {item.code} {item.subject}: {item.evidence}"
        yield f"  {item.consequence} {item.mend}".rstrip()


def _drift(source: Source) -> Iterator[shapes.Drift]:
    """From the same two answers in either mode, so that both say the same."""
    doubts = {node.name: "; ".join(node.doubts) for node in source.nodes()}
    for node in source.cluster_map().nodes:
        if node.closed:
            detail = doubts.get(node.name) or node.closed
            yield shapes.Drift(kind="closed", node=node.name, detail=detail)
        for gpu in node.gpus:
            for item in gpu.intervals:
                kind = {"reserved": "unrealized"}.get(item.state, item.state)
                if kind in ("unrealized", "blocked", "conflicted"):
                    yield shapes.Drift(
                        kind=kind,
                        node=node.name,
                        gpu_uuid=gpu.uuid,
                        start=item.start,
                        size=item.size,
                        pod=f"{item.namespace}/{item.pod}" if item.pod else "",
                        detail=item.detail,
                    )
