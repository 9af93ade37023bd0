"""``python -m node_agent.nvml.simulated``: look into a simulated node and disturb it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated.arguments import Result, add_gpu
from node_agent.nvml.simulated.disturbances import add_disturbances
from node_agent.nvml.simulated.listings import LISTINGS
from node_agent.nvml.simulated.lookups import GpuSpec
from node_agent.nvml.simulated.node import SimulatedNode
from node_agent.nvml.simulated.state import (
    DRIVER_STATES,
    ID_MAPS,
    MEMORY_FIGURES,
    PERMISSIONS,
    PERSISTENCE_DAEMON,
    PROCESS_KINDS,
    RECOVERY_FIELDS,
    UUID_MODES,
    SimulatorError,
)

BAD_INPUT = 2
_SWITCHES = ("profile_info_needs_mig", "stale_parent_handles", "ampere_auto_reset")
Verb = Callable[[SimulatedNode, argparse.Namespace], Result]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 for bad input, said on stderr."""
    options = _parser().parse_args(arguments)
    node = SimulatedNode(options.state)
    try:
        sys.stdout.write(_answer(node, options) + "\n")
    except SimulatorError as error:
        sys.stderr.write(f"error: {error}\n")
        return BAD_INPUT
    finally:
        node.close()
    return 0


def _answer(node: SimulatedNode, options: argparse.Namespace) -> str:
    if options.verb in LISTINGS:
        listing = LISTINGS[options.verb][0](node)
        return listing.as_json() if options.json else listing.as_table()
    verb: Verb = options.run
    result = verb(node, options)
    if options.json:
        return json.dumps(result, indent=2)
    return "\n".join(f"{name}: {value}" for name, value in result.items())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m node_agent.nvml.simulated",
        description="Create, show and disturb a simulated GPU node.",
    )
    parser.add_argument("--state", type=Path, required=True, help="directory of the node's state")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (_, text) in LISTINGS.items():
        verbs.add_parser(name, help=text)
    for add in (_add_creation, _add_instances, _add_clients, _add_lifecycle, add_disturbances):
        add(verbs)
    for verb in verbs.choices.values():
        # Also after the verb, where people write it; SUPPRESS keeps what stood before it.
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
    return parser


def _add_creation(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    create = verbs.add_parser("create-node", help="make the node anew")
    create.add_argument("--gpu", action="append", required=True, help="a model; repeat for more")
    create.add_argument("--id-map", choices=(*ID_MAPS, "mixed"), default="identity")
    create.add_argument("--memory", choices=MEMORY_FIGURES, default="published")
    create.add_argument("--mig", choices=("on", "off"), default="on")
    create.add_argument("--seed", help="equal seeds give equal UUIDs; default: the state directory")
    create.set_defaults(run=_create_node)
    option = verbs.add_parser("set", help="change a switch of the node")
    option.add_argument("--permission", choices=PERMISSIONS)
    option.add_argument("--driver", choices=DRIVER_STATES)
    option.add_argument("--uuids", choices=UUID_MODES)
    option.add_argument("--recovery-field", choices=RECOVERY_FIELDS)
    for name in _SWITCHES:
        option.add_argument(f"--{name.replace('_', '-')}", choices=("on", "off"))
    option.add_argument("--hidden-symbols", nargs="*", metavar="FUNCTION", help="none: show all")
    option.set_defaults(run=_set)


def _create_node(node: SimulatedNode, options: argparse.Namespace) -> Result:
    maps = ID_MAPS if options.id_map == "mixed" else (options.id_map,)
    node.create(
        [
            GpuSpec(
                model,
                id_map=maps[position % len(maps)],
                memory=options.memory,
                mig=options.mig == "on",
            )
            for position, model in enumerate(options.gpu)
        ],
        seed=options.seed,
    )
    return {"gpus": list(node.gpu_uuids()), "boot_id": node.boot_id()}


def _set(node: SimulatedNode, options: argparse.Namespace) -> Result:
    words = ("permission", "driver", "uuids", "recovery_field")
    names = (*words, "hidden_symbols", *_SWITCHES)
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    if not given:
        allowed = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise SimulatorError(f"set: nothing to change; allowed: {allowed}")
    node.set_options(
        **{name: value == "on" if name in _SWITCHES else value for name, value in given.items()}
    )
    return given


def _add_instances(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    create = verbs.add_parser("create", help="make an instance, as another program would")
    add_gpu(create)
    create.add_argument("--profile", required=True, help="name, as 1g.5gb")
    create.add_argument("--start", type=int, help="memory slice; default: the driver chooses")
    create.add_argument("--no-ci", action="store_true", help="without a compute instance")
    create.set_defaults(run=_create)
    destroy = verbs.add_parser("destroy", help="destroy an instance, as another program would")
    add_gpu(destroy)
    destroy.add_argument("--gi", type=int, required=True)
    destroy.set_defaults(run=_destroy)


def _create(node: SimulatedNode, options: argparse.Namespace) -> Result:
    instance, compute = node.create_instance(
        options.gpu, options.profile, options.start, compute=not options.no_ci
    )
    return {
        "gi": instance.gi_id,
        "placement": f"{instance.start}:{instance.size}",
        "ci": compute.ci_id if compute else None,
        "uuid": compute.mig_uuid if compute else None,
    }


def _destroy(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.destroy_instance(options.gpu, options.gi)
    return {"destroyed": options.gi}


def _add_clients(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    attach = verbs.add_parser("attach", help="a process or leaked descriptor takes hold")
    add_gpu(attach)
    attach.add_argument("--gi", type=int, help="GPU instance; default: the whole GPU")
    attach.add_argument("--ci", type=int, help="default: 0 with --gi, none for leaked")
    attach.add_argument("--kind", choices=PROCESS_KINDS, default="compute")
    attach.add_argument("--pid", type=int, help="default: a free one")
    attach.set_defaults(run=_attach)
    detach = verbs.add_parser("detach", help="a process ends")
    detach.add_argument("--pid", type=int, required=True)
    detach.set_defaults(run=_detach)
    client = verbs.add_parser("client", help="a client that blocks mode changes")
    add_gpu(client)
    client.add_argument("--name", default=PERSISTENCE_DAEMON)
    client.add_argument("--clear", action="store_true", help="remove all clients of the GPU")
    client.set_defaults(run=_client)


def _attach(node: SimulatedNode, options: argparse.Namespace) -> Result:
    whole = options.gi is None or options.kind == "leaked"
    ci_id = options.ci if options.ci is not None or whole else 0
    pid = node.attach(options.gpu, options.gi, ci_id, kind=options.kind, pid=options.pid)
    return {"pid": pid}


def _detach(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.detach(options.pid)
    return {"detached": options.pid}


def _client(node: SimulatedNode, options: argparse.Namespace) -> Result:
    if options.clear:
        node.clear_clients(options.gpu)
    else:
        node.set_client(options.gpu, options.name)
    return {"clients": list(node.gpu(options.gpu).clients)}


def _add_lifecycle(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    mode = verbs.add_parser("mig", help="set the MIG mode")
    add_gpu(mode)
    mode.add_argument("mode", choices=("on", "off"))
    mode.set_defaults(run=_mode)
    lose = verbs.add_parser("lose-gpu", help="a GPU falls off the bus")
    add_gpu(lose)
    lose.set_defaults(run=_lose)
    reset = verbs.add_parser("reset", help="reset a GPU: its instances go")
    add_gpu(reset)
    reset.set_defaults(run=_reset)
    reload_driver = verbs.add_parser("reload-driver", help="all instances and sessions go")
    reload_driver.set_defaults(run=_reload)
    reboot = verbs.add_parser("reboot", help="as reload-driver, with a new boot id")
    reboot.add_argument("--order", type=int, nargs="+", help="old GPU indexes in their new order")
    reboot.set_defaults(run=_reboot)


def _mode(node: SimulatedNode, options: argparse.Namespace) -> Result:
    status = node.set_mig_mode(options.gpu, enabled=options.mode == "on")
    return {"activation_status": NvmlCode(status).name}


def _lose(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.lose_gpu(options.gpu)
    return {"lost": node.gpu(options.gpu).uuid}


def _reset(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.reset(options.gpu)
    return {"reset": node.gpu(options.gpu).uuid}


def _reload(node: SimulatedNode, _options: argparse.Namespace) -> Result:
    node.reload_driver()
    return {"driver_load": node.driver_load()}


def _reboot(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.reboot(options.order)
    return {"boot_id": node.boot_id()}
