"""Cordon and uncordon a GPU."""

from __future__ import annotations

from hami_web.access.audit import Action, Actor, audited
from hami_web.scheduling.cordon import set_cordon
from hami_web.verbs import cluster


def cordon_gpu(actor: Actor, node: str, uuid: str, *, cordoned: bool, reason: str = "") -> bool:
    """Make a GPU of a node cordoned or not, recorded before and after; True when that changed it.

    Raises NotPublished, and ClusterError: NotFound for a node that is gone, Conflict when others
    write it all the time. DatabaseError when it cannot be recorded: then nothing was done.
    """
    name = "gpu.cordon" if cordoned else "gpu.uncordon"
    before, after = {"cordoned": not cordoned}, {"cordoned": cordoned}
    with audited(actor, Action(name, "gpu", uuid, before=before, after=after)) as progress:
        progress.detail = reason
        changed = set_cordon(cluster.nodes(), node, uuid, cordoned=cordoned)
        if not changed:
            progress.before = after
    return changed
