"""Fields that name what a caller may not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework import serializers

from hami_web.access.visibility import UNAVAILABLE

if TYPE_CHECKING:
    _Base = serializers.Serializer[Any]
else:
    _Base = object


class Hiding(_Base):
    """Put before a serializer. The ``hidden`` fields are texts, or lists of them, that may name
    Pods of any namespace: whoever does not see every namespace gets ``unavailable`` for them."""

    hidden: ClassVar[tuple[str, ...]] = ()

    def hides(self, instance: Any) -> bool:  # noqa: ARG002  # for those that know more
        """Whether this row may name a Pod."""
        return True

    def to_representation(self, instance: Any) -> Any:
        """The row as a caller may see it."""
        return self.hide(super().to_representation(instance), instance)

    def hide(self, shown: dict[str, Any], instance: Any) -> dict[str, Any]:
        """Take out of a shown row what the caller may not see; who is not known sees nothing."""
        seen = self.context.get("visibility")
        if (seen is None or not seen.everything) and self.hides(instance):
            for name in self.hidden:
                if shown.get(name):
                    shown[name] = [UNAVAILABLE] if isinstance(shown[name], list) else UNAVAILABLE
        return shown
