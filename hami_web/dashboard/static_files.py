"""Static files, answered whole: they are small, and an ASGI server wants no blocking iterator."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]
from whitenoise.responders import StaticFile  # type: ignore[import-untyped]


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Middleware: WhiteNoise's choice of file and headers in a plain response."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """The file, or 304, 206 or 405 as WhiteNoise decides."""
        answer = static_file.get_response(request.method, request.META)
        body = b""
        if answer.file is not None:
            with answer.file as file:
                body = file.read()
        response = HttpResponse(body, status=answer.status)
        del response["Content-Type"]
        for name, value in answer.headers:
            response[name] = value
        return response
