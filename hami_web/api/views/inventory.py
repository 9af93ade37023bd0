"""What the cluster has: nodes, GPUs, profiles."""

from __future__ import annotations

from django.db.models import Count, Q, QuerySet

from hami_web.api.listing import ListView
from hami_web.api.parameters import by_flag, by_search, by_size, by_text
from hami_web.api.serializers import inventory as shapes
from hami_web.inventory.models import LIVE, Gpu, Node, Profile
from hami_web.inventory.selectors import listed_gpus


class Nodes(ListView):
    """Nodes that publish GPUs."""

    serializer_class = shapes.NodeSerializer
    filters = (*by_text("name"), *by_text("closed"), by_search("name"))
    ordering = ("name", "changed_at")

    def rows(self) -> QuerySet[Node]:
        """Live ones by name."""
        return Node.objects.filter(LIVE)


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
    )
    ordering = ("uuid", "index", "model", "memory_mib")

    def rows(self) -> QuerySet[Gpu]:
        """Live ones by node and index."""
        return listed_gpus()


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
        return Profile.objects.annotate(gpus=live).filter(gpus__gt=0)
