"""Why nothing arrives on a subscription, as JSON."""

from __future__ import annotations

from magnetar.admin.local_broker.entries import entry_at
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.topic.subscription.explanation import explain, shown_id
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.errors import PreconditionFailedError
from magnetar.model.policies import JsonObject
from magnetar.protocol.sticky_key import sticky_key
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

_IDS_MAX = 1_000


def explanation(subscription: Subscription) -> JsonObject:
    """The findings, the most significant first, and the numbers they come from."""
    stats = subscription.stats()
    findings = explain(subscription)
    ahead = subscription.pump.next_ahead()
    return {
        "topic": subscription.topic.name,
        "subscription": subscription.name,
        "type": stats.type,
        "summary": findings[0].text,
        "findings": [{"what": one.what, "text": one.text, "do": one.do} for one in findings],
        "msgBacklog": stats.backlog_entries,
        "msgDelayed": stats.delayed_entries,
        "msgInReplay": stats.in_replay,
        "unackedMessages": stats.unacked_messages,
        "markDeletePosition": shown_id(subscription, stats.mark_delete),
        "nextNewMessage": None if ahead is None else shown_id(subscription, ahead),
        "consumers": [
            {
                "consumerName": consumer.name,
                "availablePermits": consumer.state.permits,
                "unackedMessages": consumer.state.unacked,
                "blockedConsumerOnUnackedMsgs": consumer.state.blocked,
                "takesBytes": consumer.connection.writable,
                "active": subscription.active_consumer in (None, consumer),
            }
            for consumer in subscription.consumers
        ],
    }


async def of_hash(subscription: Subscription, log: ManagedLedger, slot: int | None, key: str | None) -> JsonObject:
    """Owner, holder, unacknowledged and waiting messages of a Key_Shared hash or of the hash of a key.

    Entries of other keys with the same hash are left out if a key is given. Raises PreconditionFailedError.
    """
    dispatcher = subscription.dispatcher
    if not isinstance(dispatcher, KeyShared) or dispatcher.key_slot is None:
        shown = "None" if subscription.sub_type is None else subscription.sub_type.name
        raise PreconditionFailedError(
            f"Subscription {subscription.name} is of type {shown}: only Key_Shared with a consumer has hashes of keys"
        )
    if key is not None:
        slot = dispatcher.key_slot(key.encode())
    assert slot is not None
    out, waiting = dispatcher.held(slot), dispatcher.waiting_of(slot)
    owner, holder = dispatcher.owner_of(slot), dispatcher.holder_of(slot)
    ordinals = [*out, *waiting][:_IDS_MAX]
    keys = {ordinal: sticky_key(await entry_at(log, ordinal)) for ordinal in ordinals if ordinal >= log.first}
    if key is not None:
        keys = {ordinal: found for ordinal, found in keys.items() if found == key.encode()}
    return {
        "hash": slot,
        "keys": [*sorted({found.decode("utf-8", "replace") for found in keys.values()})],
        "owner": owner.name if owner is not None else None,
        "heldBy": holder.name if holder is not None else None,
        "draining": holder is not None and holder is not owner,
        "unacknowledged": [shown_id(subscription, ordinal) for ordinal in out if ordinal in keys],
        "waiting": [shown_id(subscription, ordinal) for ordinal in waiting if ordinal in keys],
        "complete": len(out) + len(waiting) <= _IDS_MAX,
    }
