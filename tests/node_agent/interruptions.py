"""Scenes in which an agent is killed at a call, and what must be true after the next start."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import grpc

from hami_web.core import annotations as keys
from tests.node_agent.agents import Agents
from tests.node_agent.lab import Lab, open_lab, wait_until
from tests.node_agent.zygote import is_change


@dataclass(frozen=True)
class Scene:
    """``prepare`` runs with an agent; ``act`` is interrupted; ``settle`` runs after the restart.

    ``fresh`` scenes interrupt the start of an agent. ``done`` tells that an uninterrupted ``act``
    has come to its end. ``settle`` gets the state that the scene is to end in, one of ``states``.
    """

    name: str
    states: tuple[str, ...]
    prepare: Callable[[Lab], None]
    act: Callable[[Lab], None]
    done: Callable[[Lab], bool]
    settle: Callable[[Lab, str], None]
    fresh: bool = False
    gpus: tuple[str, ...] = field(default=("a100-sxm4-40gb",))


def cdi_files(lab: Lab) -> int:
    return len(list((lab.folder / "cdi").glob("*")))


def live_uuids(lab: Lab) -> set[str]:
    return {
        compute.mig_uuid
        for gpu in lab.hardware.state().gpus
        for instance in gpu.instances
        for compute in instance.compute_instances
    }


def check_invariants(lab: Lab) -> None:
    """True of every state at rest: neighbour and stranger untouched, nothing without an owner."""
    assert {(0, 1), (1, 1)} <= set(lab.placements())
    (kept,) = lab.reservations("neighbour")
    assert kept.identity is not None
    assert kept.identity.mig_uuid in live_uuids(lab)
    records = {(r["gpuUUID"], r["start"], r["size"]) for r in lab.journal()}
    foreign = {(lab.gpus[0], 1, 1)}
    found = {(g.uuid, i.start, i.size) for g in lab.hardware.state().gpus for i in g.instances}
    assert found == records | foreign
    assert all(record["state"] == "realized" for record in lab.journal())
    assert cdi_files(lab) == len(records)
    half = [i for g in lab.hardware.state().gpus for i in g.instances if not i.compute_instances]
    assert half == []


def neighbours(lab: Lab) -> None:
    lab.reserve("neighbour", [(0, "1g.5gb", 0, 1)])
    lab.kubelet.allocate(lab.ids()[0])
    lab.set_status("neighbour", "Running", "running")
    lab.hardware.create_instance(0, "1g.5gb", 1)


def with_reservation(lab: Lab) -> None:
    neighbours(lab)
    lab.reserve("job", [(0, "2g.10gb", 2, 2), (0, "3g.20gb", 4, 4)])


def allocate(lab: Lab) -> None:
    with suppress(grpc.RpcError):
        lab.kubelet.allocate(*lab.ids(3)[1:], timeout=10)


def settle_allocation(lab: Lab, state: str) -> None:
    if state == "repeated":
        lab.kubelet.allocate(*lab.ids(3)[1:])
        identities = [item.identity for item in lab.reservations("job")]
        assert {i.mig_uuid for i in identities if i} <= live_uuids(lab)
        assert None not in identities
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "success"
        expected = [(0, 1), (1, 1), (2, 2), (4, 4)]
    else:
        if state == "failed":
            lab.set_status("job", "Failed")
        else:
            lab.delete("job")
        expected = [(0, 1), (1, 1)]
    wait_until(lambda: lab.placements() == expected, f"settled: {lab.placements()}")
    wait_until(lambda: not lab.node_annotation(keys.NODE_LOCK), "the lock is free")
    wait_until(lambda: len(lab.journal()) == len(expected) - 1, "recorded")


def with_running_job(lab: Lab) -> None:
    with_reservation(lab)
    lab.kubelet.allocate(*lab.ids(3)[1:])
    lab.set_status("job", "Running", "running")


def reclaimed(lab: Lab) -> bool:
    return len(lab.journal()) == 1 and cdi_files(lab) == 1


def settle_reclaim(lab: Lab, state: str) -> None:
    wait_until(lambda: lab.placements() == [(0, 1), (1, 1)], "reclaimed")
    wait_until(lambda: reclaimed(lab), "forgotten")


def with_things_to_adopt(lab: Lab) -> None:
    """A Pod whose annotation is lost, one that ended meanwhile, a dirty GPU, one without MIG."""
    neighbours(lab)
    for name, start, number in (("lost", 2, 1), ("ended", 4, 2)):
        lab.reserve(name, [(0, "2g.10gb", start, 2)])
        before = dict(lab.annotations(name))
        lab.kubelet.allocate(lab.ids(3)[number])
        lab.set_status(name, "Running", "running")
        if name == "lost":
            (lab.folder / "before").write_text(json.dumps(before))


def come_to_adopt(lab: Lab) -> None:
    lab.annotate("lost", json.loads((lab.folder / "before").read_text()))
    lab.delete("ended")
    lab.hardware.create_instance(1, "3g.20gb", 0)
    lab.hardware.set_mig_mode(2, enabled=False)


def adopted(lab: Lab) -> bool:
    done = lab.reservations("lost")[0].identity is not None
    return done and lab.placements(0) == [(0, 1), (1, 1), (2, 2)] and len(lab.journal()) == 2


def settle_adoption(lab: Lab, state: str) -> None:
    wait_until(lambda: adopted(lab), "adopted")
    wait_until(lambda: lab.placements(1) == [], "the idle GPU is clean")
    wait_until(lambda: lab.hardware.gpu(2).mig_current, "the idle GPU has its mode")


def reboot(lab: Lab) -> None:
    lab.hardware.reboot()
    lab.hardware.create_instance(0, "1g.5gb", 1)
    if (lab.folder / "random").exists():
        lab.hardware.set_options(uuids="random")


def restored(lab: Lab) -> bool:
    identities = [r.identity for name in ("job", "neighbour") for r in lab.reservations(name)]
    there = {identity.mig_uuid for identity in identities if identity} <= live_uuids(lab)
    return there and len(lab.placements()) == 4


def settle_reboot(lab: Lab, state: str) -> None:
    wait_until(lambda: restored(lab), f"made anew: {lab.placements()}")


SCENES = (
    Scene(
        "allocate",
        ("repeated", "failed", "deleted"),
        with_reservation,
        allocate,
        lambda lab: not lab.node_annotation(keys.NODE_LOCK),
        settle_allocation,
    ),
    Scene(
        "reclaim",
        ("gone",),
        with_running_job,
        lambda lab: lab.delete("job"),
        reclaimed,
        settle_reclaim,
    ),
    Scene(
        "start",
        ("adopted",),
        with_things_to_adopt,
        come_to_adopt,
        adopted,
        settle_adoption,
        fresh=True,
        gpus=("a100-sxm4-40gb", "a100-sxm4-40gb", "a100-sxm4-40gb"),
    ),
    Scene(
        "reboot",
        ("same-uuid", "other-uuid"),
        with_running_job,
        reboot,
        restored,
        settle_reboot,
        fresh=True,
    ),
)


@dataclass(frozen=True)
class Kill:
    """The last moment: before or after the n-th of the calls, or of those that change something."""

    number: int
    when: str
    of: str


NEVER = Kill(1_000_000, "before", "calls")


def every_call(calls: Sequence[str]) -> list[Kill]:
    """Between each two calls, before the first and after the last."""
    before = [Kill(number, "before", "calls") for number in range(1, len(calls) + 1)]
    return [*before, Kill(len(calls), "after", "calls")]


def every_state(calls: Sequence[str]) -> list[Kill]:
    """One for each state that the calls leave behind: between two changes all reads leave the same.

    Half way through a change nothing of ours can be: hardware, API server and rename are atomic.
    """
    changes = sum(map(is_change, calls))
    after = [Kill(number, "after", "changes") for number in range(1, changes + 1)]
    return [Kill(1, "before", "changes"), *after]


def play(
    zygote: subprocess.Popen[str], scene: Scene, state: str, kill: Kill
) -> tuple[list[str], bool]:
    """One row of the table; returns the calls that were made and whether the agent was killed."""
    with open_lab(*scene.gpus) as lab:
        agents = Agents(zygote, lab)
        try:
            agents.start_and_wait()
            scene.prepare(lab)
            if state == "other-uuid":
                (lab.folder / "random").touch()
            if scene.fresh:
                agents.kill()
                scene.act(lab)
                agents.arm(kill.number, kill.when, kill.of)
                agents.start()
            else:
                agents.arm(kill.number, kill.when, kill.of)
                scene.act(lab)
            wait_until(lambda: not agents.alive or scene.done(lab), f"{scene.name} ended")
            # At rest the last calls may still be on their way; a kill there is one more row.
            killed = not agents.alive
            agents.kill()
            calls = agents.disarm()
            agents.start_and_wait()
            scene.settle(lab, state)
            check_invariants(lab)
        except Exception:
            print(f"{scene.name}/{state}: {kill}\n{agents.log.read_text()}")
            raise
        finally:
            agents.kill()
    return calls, killed
