"""What every view of the API shares: what it needs, what its caller sees, who keeps its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.cache import patch_cache_control, patch_vary_headers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from hami_web.access.audit import Actor
from hami_web.access.identity import visibility_of
from hami_web.access.permissions import plain_request
from hami_web.access.requests import actor_of
from hami_web.access.roles import Verb
from hami_web.access.visibility import Visibility

if TYPE_CHECKING:
    _Base = APIView
else:
    _Base = object


class Governed(_Base):
    """Put before APIView or GenericAPIView. ``verb`` is what all methods need, ``verbs`` what a
    method needs instead; a view is refused to callers whose role does not allow it."""

    verb: ClassVar[Verb] = Verb.READ
    verbs: ClassVar[dict[str, Verb]] = {}

    @property
    def visibility(self) -> Visibility:
        """What the caller may see; every name of a namespace that is answered goes through it."""
        return visibility_of(plain_request(self.request))

    @property
    def actor(self) -> Actor:
        """The caller, for the audit log."""
        return actor_of(plain_request(self.request))

    def get_serializer_context(self) -> dict[str, Any]:
        """Serializers find the visibility there; none while the schema is made."""
        context: dict[str, Any] = super().get_serializer_context()  # type: ignore[misc]
        if context.get("request") is not None:
            context["visibility"] = self.visibility
        return context

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """A name that no row can hold names nothing."""
        super().initial(request, *args, **kwargs)
        if any(isinstance(value, str) and "\0" in value for value in kwargs.values()):
            raise NotFound

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """An answer is for its caller alone, and asked for again each time."""
        answer: Response = super().finalize_response(request, response, *args, **kwargs)
        patch_cache_control(answer, private=True, no_cache=True)
        patch_vary_headers(answer, ("Authorization", "Cookie"))
        return answer
