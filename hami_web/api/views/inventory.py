"""What the cluster has: nodes, GPUs, profiles."""

from __future__ import annotations

from django.db.models import Count, Q, QuerySet

from hami_web.api.listing import ListView
from hami_web.api.parameters import AT, by_flag, by_search, by_size, by_text
from hami_web.api.serializers import inventory as shapes
from hami_web.inventory.models import LIVE, Gpu, GpuState, Node, NodeState, Profile
from hami_web.inventory.selectors import gpus_at, listed_gpus, nodes_at


class Nodes(ListView):
    """Nodes that publish GPUs."""

    serializer_class = shapes.NodeSerializer
    filters = (*by_text("name"), *by_text("closed"), by_search("name"), AT)
    ordering = ("name", "changed_at")

    def rows(self) -> QuerySet[Node] | QuerySet[NodeState]:
        """Live ones by name, or those of the moment asked about."""
        moment = self.moment()
        return Node.objects.filter(LIVE) if moment is None else nodes_at(moment)


class Gpus(ListView):
    """GPUs with their profiles' names and blocked memory slices."""

    serializer_class = shapes.GpuSerializer
    filters = (
        *by_text("uuid"),
        *by_text("node", "node__name"),
        *by_text("model"),
        *by_text("closed"),
        by_flag("healthy", lambda rows, value: rows.filter(healthy=value)),
        by_flag("cordoned", lambda rows, value: rows.filter(cordoned=value)),
        *by_size("memory_mib"),
        by_search("uuid", "node__name", "model"),
        AT,
    )
    ordering = ("uuid", "index", "model", "memory_mib")

    def rows(self) -> QuerySet[Gpu] | QuerySet[GpuState]:
        """Live ones by node and index, or those of the moment asked about."""
        moment = self.moment()
        return listed_gpus() if moment is None else gpus_at(moment)


class Profiles(ListView):
    """Profiles that GPUs offer, for each distinct list of profiles."""

    serializer_class = shapes.ProfileSerializer
    filters = (
        *by_text("name"),
        *by_size("memory_mib"),
        *by_size("compute_slices"),
        by_search("name"),
    )
    ordering = ("name", "memory_mib", "compute_slices")

    def rows(self) -> QuerySet[Profile]:
        """Those of live GPUs, smallest first."""
        live = Count("profile_set__gpus", filter=Q(profile_set__gpus__gone_at=None))
        found = Profile.objects.annotate(gpus=live).filter(gpus__gt=0)
        # Rows that are grouped have no order of their own.
        return found.order_by("memory_mib", "compute_slices", "name", "id")
