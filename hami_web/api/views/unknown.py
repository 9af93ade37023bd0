"""Addresses that nothing has."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.views import APIView

from hami_web.api.codes import NOT_FOUND
from hami_web.api.governed import Governed
from hami_web.api.problems import Problem


class Unknown(Governed, APIView):
    """404 as a problem, whatever the method."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Only callers are told."""
        super().initial(request, *args, **kwargs)
        raise Problem(NOT_FOUND, f"{request.path[:200]} is no address of this API")
