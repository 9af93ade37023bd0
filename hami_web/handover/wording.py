"""Words of take-overs in the reader's language: steps, what they do, obstacles and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.handover.lifecycle import TrialState
from hami_web.handover.models import EventKind, Outcome
from hami_web.handover.obstacles import ObstacleCode
from hami_web.handover.steps import Step
from hami_web.migration import codes


@dataclass(frozen=True, slots=True)
class StepWords:
    """A step's title, and what is reached by it."""

    title: Promise
    about: Promise


STEPS: Final[Mapping[Step, StepWords]] = {
    Step.ASSESS: StepWords(_("Assess"), _("Kubelet, driver, allowlist and rights are fit. Nothing is changed.")),
    Step.CORDON: StepWords(_("Cordon"), _("No new Pod comes to the node.")),
    Step.DRAIN: StepWords(_("Drain legacy Pods"), _("No Pod uses a GPU of the node in a way that we cannot adopt. Budgets are kept; Pods without a controller are left to their owners.")),
    Step.HAND_OVER: StepWords(_("Hand over"), _("No other plugin and no MIG Manager runs on the node, or could come back to it.")),
    Step.SCHEDULER: StepWords(_("Scheduler first"), _("The older scheduler and its webhook are gone, and ours is configured. Only people do this.")),
    Step.PUBLISH: StepWords(_("Publish the capability"), _("Our agent runs on the node and says what its GPUs can be cut into.")),
    Step.TEST: StepWords(_("Lifecycle test"), _("For each profile: a Pod gets an instance, keeps it over a restart of the agent, and leaves its memory slices free for the next.")),
    Step.UNCORDON: StepWords(_("Uncordon"), _("The node is open for work.")),
    Step.BACK_CORDON: StepWords(_("Back: cordon"), _("No new Pod comes to the node.")),
    Step.BACK_DRAIN: StepWords(_("Back: drain our Pods"), _("No Pod with an instance of ours is on the node.")),
    Step.BACK_WITHDRAW: StepWords(_("Back: withdraw the agent"), _("Our agent does not run on the node, and does not come back.")),
    Step.BACK_RESTORE: StepWords(_("Back: restore labels"), _("The node's labels are as they were before the take-over.")),
    Step.BACK_UNCORDON: StepWords(_("Back: uncordon"), _("The node is open for work, unless it was cordoned before.")),
}  # fmt: skip
"""One for every step."""

OUTCOMES: Final[Mapping[str, Promise]] = {
    Outcome.OPEN: _("under way"),
    Outcome.DONE: _("taken over"),
    Outcome.ROLLED_BACK: _("rolled back"),
    Outcome.CLOSED: _("closed"),
}
EVENTS: Final[Mapping[str, Promise]] = {
    EventKind.STARTED: _("started"),
    EventKind.REACHED: _("step entered"),
    EventKind.LOST: _("fell back"),
    EventKind.APPROVED: _("approved"),
    EventKind.WITHDRAWN: _("approval withdrawn"),
    EventKind.CHANGED: _("cluster changed"),
    EventKind.REFUSED: _("refused by the cluster"),
    EventKind.TESTED: _("profile tested"),
    EventKind.TURNED_BACK: _("turned back"),
    EventKind.ENDED: _("ended"),
}
TRIALS: Final[Mapping[str, Promise]] = {
    TrialState.WAITING: _("waits"),
    TrialState.CREATED: _("its Pod waits for an instance"),
    TrialState.REALIZED: _("has an instance"),
    TrialState.RESTARTING: _("the agent restarts"),
    TrialState.ADOPTED: _("kept its instance; its Pod ends"),
    TrialState.AGAIN: _("a second Pod waits for the same memory slices"),
    TrialState.RECLAIMED: _("reclaimed and made again; the second Pod ends"),
    TrialState.FAILING: _("failed; its Pods are removed"),
    TrialState.PASSED: _("passed"),
    TrialState.FAILED: _("failed"),
}
MENDS: Final[Mapping[ObstacleCode, Promise]] = {
    ObstacleCode.NODE_GONE: _("Nothing is done without it. Close the take-over if it does not come back."),
    ObstacleCode.NODE_REPLACED: _("Another node has its name now: close this take-over and begin anew."),
    ObstacleCode.NOT_CORDONED: _("Approve the step, or: kubectl cordon {node}"),
    ObstacleCode.STILL_CORDONED: _("Approve the step, or: kubectl uncordon {node}"),
    ObstacleCode.NOT_EVICTED_BY_US: _("It would not come back. Ask its owner, then delete it: kubectl delete {subject}"),
    ObstacleCode.EVICTION_REFUSED: _("A budget allows no disruption now; it is tried again until its owner allows one."),
    ObstacleCode.OTHER_COULD_RUN: _("Approve the step, which takes the node out of its node selector; where that is not enough, change or uninstall it."),
    ObstacleCode.SELECTOR_SHARED: _("Give our agent's DaemonSet a node selector of its own: devicePlugin.nvidiaNodeSelector of the chart, for example hami.io/dynamic-mig=on."),
    ObstacleCode.AGENT_ABSENT: _("Approve the step, which sets the labels; else install the agent's DaemonSet."),
    ObstacleCode.AGENT_REMAINS: _("Approve the step, which takes our labels away; a label that was there before has to go from the DaemonSet's node selector."),
    ObstacleCode.NOT_PUBLISHED: _("It comes once the agent has read the GPUs: kubectl logs of the agent's Pod on {node}."),
    ObstacleCode.NOT_READY: _("The condition says what the GPUs need; docs/operations.md has each reason."),
    ObstacleCode.NOTHING_TO_TEST: _("No profile of the allowlist is published on the node: look at migProfileAllowlist."),
    ObstacleCode.TEST_MISSING: _("Approve the step: the test runs by itself, profile by profile."),
    ObstacleCode.TEST_FAILED: _("Look at the reason; another approval tries the failed profiles again."),
    ObstacleCode.OUR_POD_REMAINS: _("Approve the step, which evicts it; without a controller its owner deletes it."),
    ObstacleCode.LABEL_DIFFERS: _("Approve the step, which writes it as it was."),
    ObstacleCode.NOT_PERMITTED: _("The worker lacks the right: install the chart with handover.enabled, or bind deploy/rbac/optional/handover.yaml."),
    ObstacleCode.NOT_DONE: _("It is tried again in half a minute."),
}  # fmt: skip
"""One for every code of ours."""


def step_title(step: str) -> str:
    """A step's name; that of another release as it is."""
    return str(STEPS[Step(step)].title) if step in STEPS else step


def step_about(step: str) -> str:
    """What is reached by a step."""
    return str(STEPS[Step(step)].about) if step in STEPS else ""


def mend_of(code: str, node: str, subject: str) -> str:
    """What to do about an obstacle; a finding's words are those of the check."""
    if code not in MENDS:
        return codes.mend(code, node, subject)
    namespace, slash, name = subject.removeprefix("Pod ").partition("/")
    named = f"pod -n {namespace} {name}" if subject.startswith("Pod ") and slash else subject
    return str(MENDS[ObstacleCode(code)]).format(node=node, subject=named)
