"""Drives the lifecycle tests of a take-over, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from hami_web.handover.actions import Writer
from hami_web.handover.changes import PodName
from hami_web.handover.goals import capability_of
from hami_web.handover.lifecycle import Deed, Seen, Trial, TrialState, proceed, trials_of
from hami_web.handover.models import NodeHandover, ProfileTest
from hami_web.handover.probe_pods import (
    FIRST,
    SECOND,
    Form,
    pod_document,
    pod_name,
    seen_agent,
    seen_pod,
)
from hami_web.handover.sight import TEST_LABEL, Sight
from hami_web.handover.store import (
    OPEN_STATES,
    UNDER_WAY,
    disapprove,
    plan_tests,
    save_test,
    trial_of,
)
from hami_web.migration.objects import CheckedPod

CALLED_OFF = "it was called off"


@dataclass(frozen=True, slots=True)
class Driver:
    """Everything that driving a test takes."""

    writer: Writer
    form: Form

    def drive(self, row: NodeHandover, sight: Sight, now: datetime) -> None:
        """One step of the test that is under way; the approval ends with the last of them.

        The first plans a test for each profile that the node publishes; an approval after some
        failed tries those again. A failed profile keeps no other from being tried. Raises
        ClusterError.
        """
        capability = capability_of(sight)
        if capability is not None and not row.tests.filter(state__in=OPEN_STATES).exists():
            plan_tests(row, trials_of(capability), now)
        item = row.tests.filter(state__in=OPEN_STATES).first()
        if item is not None:
            self._step(row, item, sight, now, lambda test: test)
        if not row.tests.filter(state__in=OPEN_STATES).exists():
            disapprove(row)

    def call_off(self, row: NodeHandover, sight: Sight, now: datetime) -> bool:
        """Take away the Pods of a test that is not to go on. True where there is one."""
        item = row.tests.filter(state__in=UNDER_WAY).first()
        if item is None:
            return False

        def failing(test: Trial) -> Trial:
            if test.state is TrialState.FAILING:
                return test
            return replace(test, state=TrialState.FAILING, since_s=0.0, error=CALLED_OFF)

        self._step(row, item, sight, now, failing)
        return True

    def _step(
        self,
        row: NodeHandover,
        item: ProfileTest,
        sight: Sight,
        now: datetime,
        instead: Callable[[Trial], Trial],
    ) -> None:
        first, second = (self._pod(row, item, which) for which in (FIRST, SECOND))
        agent = seen_agent(sight)
        seen = Seen(seen_pod(first), seen_pod(second), agent)
        test, deed = proceed(instead(trial_of(item, now)), seen)
        # Written before it is done: whoever comes after a kill finds what to look for.
        save_test(item, test, now)
        if deed in (Deed.CREATE_FIRST, Deed.CREATE_SECOND):
            which = FIRST if deed is Deed.CREATE_FIRST else SECOND
            name = self._name(row, item, which)
            document = pod_document(name, row.pk, test, sight, self.form)
            self.writer.create_pod(self.form.namespace, document)
        if deed in (Deed.DELETE_FIRST, Deed.DELETE_BOTH):
            self._delete(row, first)
        if deed in (Deed.DELETE_SECOND, Deed.DELETE_BOTH):
            self._delete(row, second)
        if deed is Deed.RESTART_AGENT and sight.agent_pod is not None:
            meta = sight.agent_pod.metadata
            self.writer.evict(PodName(meta.namespace, meta.name, test.agent_uid))

    def _pod(self, row: NodeHandover, item: ProfileTest, which: str) -> CheckedPod | None:
        return self.writer.get_pod(self.form.namespace, self._name(row, item, which))

    @staticmethod
    def _name(row: NodeHandover, item: ProfileTest, which: str) -> str:
        return pod_name(row.pk, item.pk, item.attempt, which)

    def _delete(self, row: NodeHandover, pod: CheckedPod | None) -> None:
        """Only what carries our label: a Pod of the name that somebody else made is theirs."""
        if pod is None or pod.labels.get(TEST_LABEL) != str(row.pk):
            return
        if pod.metadata.deletion_timestamp is None:
            meta = pod.metadata
            self.writer.delete(PodName(meta.namespace, meta.name, meta.uid))
