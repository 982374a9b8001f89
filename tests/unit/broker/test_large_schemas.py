"""Large schemas are judged beside the event loop, and what cannot be judged in a bounded time is refused."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from magnetar.broker import schema_registry
from magnetar.broker.policies.effective_policies import EffectivePolicies
from magnetar.broker.schema_registry import SchemaRegistry
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import IncompatibleSchemaError, InvalidSchemaDataError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.runtime.clock import SystemClock
from magnetar.schema_definitions import avro_resolution
from magnetar.schema_definitions.compatibility import require_follows_latest
from magnetar.testing.memory_metadata import MemoryMetadataStore

TOPIC = TopicName.parse("persistent://public/default/t")


def record(*fields: Any) -> SchemaDefinition:
    return SchemaDefinition(
        SchemaType.AVRO, json.dumps({"type": "record", "name": "r", "fields": list(fields)}).encode()
    )


def wide(count: int, *more: Any) -> SchemaDefinition:
    fields = [optional(f"f{n}") for n in range(count)]
    return record(*fields, *more)


def union(count: int, prefix: str) -> SchemaDefinition:
    field = {"name": "a", "type": "int"}
    branches = [{"type": "record", "name": f"{prefix}{n}", "fields": [field]} for n in range(count)]
    return record({"name": "u", "type": branches})


def run(scenario: Callable[[SchemaRegistry], Any]) -> Any:
    async def all_of_it() -> Any:
        settings = Settings()
        resources = Resources(MemoryMetadataStore(), settings)
        await resources.ensure_defaults()
        registry = SchemaRegistry(resources.schemas, EffectivePolicies(resources, settings), SystemClock())
        return await scenario(registry)

    return asyncio.run(all_of_it())


def test_the_loop_goes_on_while_a_large_one_is_judged() -> None:
    judges: set[int] = set()
    judge = require_follows_latest

    def noted(*given: Any) -> None:
        judges.add(threading.get_ident())
        judge(*given)

    async def scenario(registry: SchemaRegistry) -> None:
        with patch.object(schema_registry, "require_follows_latest", noted):
            assert await registry.add(TOPIC, wide(3), by_client=True) == 0
            assert await registry.add(TOPIC, wide(3, optional("a")), by_client=True) == 1
            assert judges == {threading.get_ident()}
            judges.clear()
            assert await registry.add(TOPIC, wide(3000, optional("a")), by_client=True) == 2
            await registry.require_readable(TOPIC, wide(3000))
            await registry.require_compatible(TOPIC, wide(3001))
            with pytest.raises(InvalidSchemaDataError):
                await registry.add(TOPIC, SchemaDefinition(SchemaType.AVRO, b"{" * 20_000), by_client=True)
        assert judges
        assert threading.get_ident() not in judges

    run(scenario)


def test_one_that_comes_while_another_is_judged_has_to_follow_it() -> None:
    async def scenario(registry: SchemaRegistry) -> None:
        results = await asyncio.gather(
            registry.add(TOPIC, wide(1000, {"name": "x", "type": "int", "default": 1}), by_client=True),
            registry.add(TOPIC, wide(1000, {"name": "x", "type": "string", "default": ""}), by_client=True),
            registry.add(TOPIC, wide(1000, {"name": "x", "type": "int", "default": 1}), by_client=True),
            return_exceptions=True,
        )
        assert [one for one in results if not isinstance(one, Exception)] == [0, 0]
        assert sum(isinstance(one, IncompatibleSchemaError) for one in results) == 1

    run(scenario)


def test_unions_of_very_many_records_are_compared_up_to_a_bound() -> None:
    async def scenario(registry: SchemaRegistry) -> None:
        await registry.add(TOPIC, union(300, "a"), by_client=True)
        with patch.object(avro_resolution, "_WORK_MAX", 10_000):
            # the same names are found without looking for them
            await registry.require_readable(TOPIC, union(301, "a"))
        with (
            patch.object(avro_resolution, "_WORK_MAX", 10_000),
            pytest.raises(IncompatibleSchemaError, match="too much to compare") as refused,
        ):
            await registry.add(TOPIC, union(301, "b"), by_client=True)
        # the error names some of the branches, not all of them
        assert len(str(refused.value)) < 2_000

    run(scenario)


def optional(name: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", "string"], "default": None}
