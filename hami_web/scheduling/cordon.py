"""Take a GPU out of service for new work, or offer it again, by its node's annotation."""

from __future__ import annotations

from typing import Final, Protocol

from hami_web.cluster.errors import ClusterError, Conflict
from hami_web.cluster.ports import Annotations
from hami_web.cluster.views import NodeView
from hami_web.core.annotations import NODE_DEVICE_CORDON, NODE_REGISTER
from hami_web.core.cordon import decode_cordon, encode_cordon
from hami_web.core.errors import MalformedContract
from hami_web.core.registration import decode_registration

TRIES: Final = 5
"""Kubelet and agent write the node as well; a GPU's cordon does not depend on what they write."""


class Nodes(Protocol):
    """Where nodes are read and annotated; every call raises ClusterError."""

    def get_node(self, name: str) -> NodeView: ...

    def annotate_node(self, node: NodeView, annotations: Annotations) -> NodeView: ...


class NotPublished(Exception):
    """The node does not publish this GPU now."""


def set_cordon(nodes: Nodes, name: str, uuid: str, *, cordoned: bool) -> bool:
    """Make a GPU cordoned or not; True when that changed something.

    Other GPUs of the annotation stay as they are. Raises NotPublished for a cordon of a GPU that
    the node does not have, and ClusterError: Conflict when others write the node all the time.
    """
    failure: ClusterError | None = None
    for _ in range(TRIES):
        node = nodes.get_node(name)
        before = decode_cordon(node.annotations.get(NODE_DEVICE_CORDON, ""))
        if (uuid in before) == cordoned:
            # After a write whose outcome was not clear this look has settled it.
            return failure is not None and failure.outcome_unclear
        if cordoned and not _publishes(node, uuid):
            raise NotPublished(f"node {name} does not publish {uuid} now")
        after = (*before, uuid) if cordoned else tuple(other for other in before if other != uuid)
        try:
            nodes.annotate_node(node, {NODE_DEVICE_CORDON: encode_cordon(after) or None})
        except Conflict as error:
            failure = error
        except ClusterError as error:
            if not error.outcome_unclear:
                raise
            failure = error
        else:
            return True
    assert failure is not None  # noqa: S101  # the loop ends by return or with a failure
    raise failure


def _publishes(node: NodeView, uuid: str) -> bool:
    """Whether a node's register names the GPU; one that cannot be read says nothing against it."""
    try:
        decoded = decode_registration(node.annotations.get(NODE_REGISTER) or "[]")
    except MalformedContract:
        return True
    known = {gpu.uuid for gpu in decoded.capability.gpus} | {uuid for uuid, _ in decoded.refused}
    return uuid in known
