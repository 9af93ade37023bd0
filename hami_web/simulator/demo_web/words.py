"""The words of the story's scenes, and the page where each is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.simulator.demo_board import Position, Scene
from hami_web.simulator.demo_plan import NAMESPACE


@dataclass(frozen=True, slots=True)
class SceneWords:
    """``said`` has places for the names that the story gives with the scene."""

    title: Promise
    said: Promise
    link: Promise


WORDS: Final[dict[Scene, SceneWords]] = {
    Scene.FILL: SceneWords(
        _("Work fills the cluster"),
        _("Training, notebooks and %(small)s small chat Pods arrive; each gets an instance."),
        _("Watch the map"),
    ),
    Scene.FRAGMENT: SceneWords(
        _("Holes appear"),
        _("Some chat Pods end. Memory slices are free, but no %(profile)s fits into the holes."),
        _("See the fragmentation"),
    ),
    Scene.EXPLAIN: SceneWords(
        _("A Pod waits, and you are told why"),
        _("Pod %(pod)s needs more than any hole has; the reason is given for every GPU."),
        _("See why it waits"),
    ),
    Scene.PLAN: SceneWords(
        _("The fewest Pods to move"),
        _("A plan shows how one %(profile)s for %(pod)s becomes free. It only plans."),
        _("See the drain plan"),
    ),
    Scene.MOVE: SceneWords(
        _("An admin follows the plan"),
        _("Pod %(moving)s is evicted, so that %(pod)s can start."),
        _("Watch the map"),
    ),
    Scene.RECOVER: SceneWords(
        _("The cluster recovers"),
        _("Pod %(pod)s started by itself, and %(moving)s runs in one of the holes."),
        _("See how it started"),
    ),
    Scene.FOREIGN: SceneWords(
        _("A foreign instance"),
        _("Somebody cut %(place)s on %(node)s by hand. It is counted as taken and left alone."),
        _("See it on its GPU"),
    ),
    Scene.ALERT: SceneWords(
        _("An alert is raised"),
        _("%(place)s on %(node)s belongs to no Pod, and the alert says what helps."),
        _("See the alert"),
    ),
    Scene.CLEARED: SceneWords(
        _("The alert is over"),
        _("The foreign instance on %(node)s was removed, and its alert closed by itself."),
        _("See the map"),
    ),
    Scene.CLOSE: SceneWords(
        _("The end, and the beginning"),
        _("All Pods finish and their instances are reclaimed; then the story starts again."),
        _("Look back into the past"),
    ),
}

_VIEWS: Final[dict[Scene, str]] = {
    Scene.FILL: "page",
    Scene.FRAGMENT: "fragmentation",
    Scene.EXPLAIN: "pod-page",
    Scene.PLAN: "drain",
    Scene.MOVE: "page",
    Scene.RECOVER: "pod-page",
    Scene.FOREIGN: "gpu-page",
    Scene.ALERT: "alerts",
    Scene.CLEARED: "page",
    Scene.CLOSE: "history",
}


def page_of(position: Position) -> str:
    """The address of the page that shows the scene."""
    view = f"dashboard:{_VIEWS[position.scene]}"
    names = position.names
    if position.scene in (Scene.EXPLAIN, Scene.RECOVER):
        return reverse(view, args=(NAMESPACE, names["pod"]))
    if position.scene is Scene.FOREIGN:
        return reverse(view, args=(names["gpu"],))
    if position.scene is Scene.PLAN:
        return f"{reverse(view)}?{urlencode({'profile': names['profile'], 'count': '1'})}"
    if position.scene is Scene.CLOSE and "at" in names:
        return f"{reverse(view)}?{urlencode({'at': names['at']})}"
    return reverse(view)
