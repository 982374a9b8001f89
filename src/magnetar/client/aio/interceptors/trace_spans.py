"""Spans of OpenTelemetry for messages, with the trace context in their properties (the extra ``telemetry``).

As Java's client has it (PIP-446): a producer's span ``send TOPIC`` ends with the receipt; a consumer's span
``process TOPIC`` begins when the application gets the message, is a child of the producer's, and ends with its
acknowledgement, its negative acknowledgement or the end of the consumer. The context travels as the configured
propagator writes it, by default W3C's ``traceparent`` and ``tracestate``.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from magnetar.client.aio.interceptors.consumer_interceptor import ConsumerInterceptor
from magnetar.client.aio.interceptors.producer_interceptor import ProducerInterceptor
from magnetar.client.arguments.expected_argument import ExpectedArgument
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.commands import KeyValues

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from magnetar.client.aio.consumers.consumer import Consumer
    from magnetar.client.aio.producers.producer import Producer

SPANS_MAX: Final = 10_000
"""Messages of one producer or consumer whose spans are open; of more the oldest end without an acknowledgement."""
_NAME: Final = "magnetar"


def _is_provider(given: Any) -> bool:
    return not isinstance(given, type) and callable(given.get_tracer)


_PROVIDER: Final = ExpectedArgument("a TracerProvider of OpenTelemetry", _is_provider).or_none()


def tracer_of(provider: Any) -> Tracer:
    """Return a tracer of a provider, None for the configured one.

    Raises ArgumentError, InvalidValueError without the library.
    """
    try:
        from opentelemetry import trace
    except ImportError:
        raise InvalidValueError("tracing needs OpenTelemetry: pip install magnetar[telemetry]") from None
    _PROVIDER.check("tracer_provider", provider)
    return trace.get_tracer(_NAME, tracer_provider=provider)


class TracingProducerInterceptor(ProducerInterceptor):
    """A span for each message that is sent."""

    def __init__(self, tracer_provider: Any = None) -> None:
        """``tracer_provider``: OpenTelemetry's; None: the one that the program has configured."""
        self._tracer = tracer_of(tracer_provider)
        self._spans: OrderedDict[KeyValues, Span] = OrderedDict()

    @override
    def before_send(self, producer: Producer, message: OutgoingMessage) -> OutgoingMessage:
        from opentelemetry import propagate, trace

        topic = producer.topic()
        attributes = {**_common(topic, "send"), "messaging.message.body.size": len(message.payload)}
        span = self._tracer.start_span(f"send {topic}", kind=trace.SpanKind.PRODUCER, attributes=attributes)
        if message.key is not None:
            span.set_attribute("messaging.pulsar.message.key", message.key)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span))
        if not carrier:
            span.end()  # there is no propagator by which the receipt could find it again
            return message
        kept = tuple(pair for pair in message.properties if pair[0] not in carrier)
        self._spans[tuple(sorted(carrier.items()))] = span
        if len(self._spans) > SPANS_MAX:
            self._spans.popitem(last=False)[1].end()
        return replace(message, properties=(*kept, *carrier.items()))

    @override
    def on_send_acknowledgement(
        self, producer: Producer, message: OutgoingMessage, message_id: MessageId | None, error: BaseException | None
    ) -> None:
        from opentelemetry import propagate

        fields = propagate.get_global_textmap().fields
        span = self._spans.pop(tuple(sorted(pair for pair in message.properties if pair[0] in fields)), None)
        if span is None:
            return  # another interceptor has taken the context out
        if message_id is not None:
            span.set_attribute("messaging.message.id", str(message_id))
        _end(span, error)

    @override
    def close(self) -> None:
        while self._spans:
            self._spans.popitem()[1].end()


class TracingConsumerInterceptor(ConsumerInterceptor):
    """A span for each message that is received, until it is acknowledged."""

    def __init__(self, tracer_provider: Any = None) -> None:
        """``tracer_provider``: OpenTelemetry's; None: the one that the program has configured."""
        self._tracer = tracer_of(tracer_provider)
        self._spans: OrderedDict[tuple[str, int, int, int], Span] = OrderedDict()

    @override
    def before_consume(self, consumer: Consumer, message: Message) -> Message:
        from opentelemetry import propagate, trace

        topic, message_id = message.topic_name(), message.message_id()
        attributes = {
            **_common(topic, "process"),
            "messaging.message.id": str(message_id),
            "messaging.message.body.size": len(message.data()),
            "messaging.destination.subscription.name": consumer.subscription_name(),
        }
        span = self._tracer.start_span(
            f"process {topic}", propagate.extract(message.properties()), trace.SpanKind.CONSUMER, attributes
        )
        key = _key(message_id)
        known = self._spans.pop(key, None)
        if known is not None:
            known.end()
        self._spans[key] = span
        if len(self._spans) > SPANS_MAX:
            self._spans.popitem(last=False)[1].end()
        return message

    @override
    def on_acknowledge(self, consumer: Consumer, message_id: MessageId, error: BaseException | None) -> None:
        span = self._spans.pop(_key(message_id), None)
        if span is not None:
            _end(span, error)

    @override
    def on_acknowledge_cumulative(self, consumer: Consumer, message_id: MessageId, error: BaseException | None) -> None:
        last = _key(message_id)
        for key in [one for one in self._spans if one[0] == last[0] and one <= last]:
            _end(self._spans.pop(key), error)

    @override
    def on_negative_acks_send(self, consumer: Consumer, message_ids: set[MessageId]) -> None:
        self._again(message_ids, "negative acknowledgement")

    @override
    def on_ack_timeout_send(self, consumer: Consumer, message_ids: set[MessageId]) -> None:
        self._again(message_ids, "acknowledgement timeout")

    def _again(self, message_ids: set[MessageId], why: str) -> None:
        entries = {_key(one)[:3] for one in message_ids}
        for key in [one for one in self._spans if one[:3] in entries]:
            span = self._spans.pop(key)
            span.add_event(why)
            span.end()

    @override
    def close(self) -> None:
        while self._spans:
            self._spans.popitem()[1].end()


def _common(topic: str, operation: str) -> dict[str, str | int]:
    return {
        "messaging.system": "pulsar",
        "messaging.destination.name": topic,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _key(one: MessageId) -> tuple[str, int, int, int]:
    return one.topic, one.ledger_id(), one.entry_id(), one.batch_index()


def _end(span: Span, error: BaseException | None) -> None:
    if error is not None:
        from opentelemetry.trace import Status, StatusCode

        span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        span.record_exception(error)
    span.end()
