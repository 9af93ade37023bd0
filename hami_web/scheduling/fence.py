"""Writes of the leader only: what a replica sends after its term is refused before it is sent."""

from __future__ import annotations

from hami_web.cluster.ports import Annotations, Binding, Cluster
from hami_web.cluster.views import NodeView, PodView
from hami_web.scheduling.leadership import Leadership, check_leads


class FencedCluster:
    """A cluster whose writes raise Superseded while this process does not lead. Reads pass."""

    def __init__(self, cluster: Cluster, leadership: Leadership) -> None:
        self._cluster = cluster
        self._leadership = leadership

    def get_pod(self, namespace: str, name: str) -> PodView:
        return self._cluster.get_pod(namespace, name)

    def get_node(self, name: str) -> NodeView:
        return self._cluster.get_node(name)

    def bind(self, binding: Binding) -> None:
        check_leads(self._leadership, f"Binding of {binding.namespace}/{binding.name}")
        self._cluster.bind(binding)

    def annotate_node(self, node: NodeView, annotations: Annotations) -> NodeView:
        check_leads(self._leadership, f"annotations of node {node.name}")
        return self._cluster.annotate_node(node, annotations)

    def annotate_pod(self, pod: PodView, annotations: Annotations) -> None:
        check_leads(self._leadership, f"annotations of Pod {pod.full_name}")
        self._cluster.annotate_pod(pod, annotations)
