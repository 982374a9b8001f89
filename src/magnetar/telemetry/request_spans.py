"""One span for each REST request: method, route and status, below the span that the caller names."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SHOWN = 500


class RequestSpans:
    """Stands where the path is as it was sent, so that the router leaves the route in the same scope."""

    def __init__(self, app: ASGIApp, provider: TracerProvider) -> None:
        self._app = app
        self._tracer = provider.get_tracer("magnetar.admin")
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"][:_SHOWN]
        # no query: a token may stand in it
        sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"] if name in _TRACE}
        attributes = {"http.request.method": method, "url.path": path, "url.scheme": scope.get("scheme", "http")}
        parent = self._propagator.extract(sent)
        span = self._tracer.start_span(method, parent, SpanKind.SERVER, attributes)

        async def noticing(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_status(StatusCode.ERROR)
            await send(message)

        try:
            await self._app(scope, receive, noticing)
        except BaseException as error:
            span.set_status(StatusCode.ERROR, type(error).__name__)
            raise
        finally:
            route = getattr(scope.get("route"), "path_format", None)
            if isinstance(route, str) and route != "/{path}":
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
            span.end()


_TRACE = frozenset((b"traceparent", b"tracestate"))
