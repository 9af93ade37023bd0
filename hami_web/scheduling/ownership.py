"""The annotations of a reservation belong to the scheduler and the agent, not to users.

A new Pod cannot have a reservation: whatever it brings is the remains of another Pod's manifest, or
forged, and is taken off. On a Pod that exists only trusted writers may change them.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.scheduling.verdict import PatchOperation, Verdict, escape


def strip(pod: PodView) -> tuple[PodView, tuple[PatchOperation, ...], tuple[str, ...]]:
    """A new Pod without reservation, the operations that make it so, and what to tell its user.

    ``spec.nodeName`` goes too where it is the node of the old reservation: a manifest dumped from
    a running Pod is scheduled anew.
    """
    annotations = pod.annotations
    labels = pod.metadata.labels or {}
    stale = [key for key in keys.OWNED_ON_PODS if key in annotations]
    if not stale and keys.POD_NODE not in labels:
        return pod, (), ()
    patch = [PatchOperation("remove", f"/metadata/annotations/{escape(key)}") for key in stale]
    told = list(stale)
    if keys.POD_NODE in labels:
        patch.append(PatchOperation("remove", f"/metadata/labels/{escape(keys.POD_NODE)}"))
        told.append(f"label {keys.POD_NODE}")
    spec = pod.spec
    if spec.node_name and spec.node_name == annotations.get(keys.POD_NODE):
        patch.append(PatchOperation("remove", "/spec/nodeName"))
        told.append(f"spec.nodeName {spec.node_name}")
        spec = msgspec.structs.replace(spec, node_name="")
    metadata = msgspec.structs.replace(
        pod.metadata,
        annotations={key: text for key, text in annotations.items() if key not in stale},
        labels={key: text for key, text in labels.items() if key != keys.POD_NODE},
    )
    clean = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
    warning = f"removed what another Pod's reservation left in this manifest: {', '.join(told)}"
    return clean, tuple(patch), (warning,)


def check_update(pod: PodView, old: PodView, user: str, trusted: Collection[str]) -> Verdict:
    """Refuse a change of owned keys by anyone who is not trusted; say nothing to anything else."""
    if user in trusted:
        return Verdict()
    changed = [
        f"metadata.annotations[{key}]"
        for key in keys.OWNED_ON_PODS
        if pod.annotations.get(key) != old.annotations.get(key)
    ]
    before, after = old.metadata.labels or {}, pod.metadata.labels or {}
    if before.get(keys.POD_NODE) != after.get(keys.POD_NODE):
        changed.append(f"metadata.labels[{keys.POD_NODE}]")
    if not changed:
        return Verdict()
    return Verdict(
        refusal=f"Pod {pod.full_name}: {', '.join(changed)}: a change by {user!r} is not allowed; "
        f"allowed: {', '.join(sorted(trusted))}, since a Pod's devices are reserved with them"
    )
