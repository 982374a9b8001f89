"""Our asyncio client as one side of the matrix. ``python -m tests.interop.asyncio_peer URL``."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from magnetar import aio
from tests.interop.encodings import Fields
from tests.interop.job_lines import answer_lines
from tests.interop.python_jobs import PATIENCE_MS, SILENCE_MS, PythonJobs

T = TypeVar("T")


class AsyncioPeer:
    """Does jobs with one client, whose loop has a thread of its own and goes on between jobs."""

    def __init__(self, url: str) -> None:
        self._jobs = PythonJobs("magnetar", with_dataclasses=True)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client = self._run(self._connected(url))
        self._held: dict[str, aio.Consumer[Any]] = {}

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    @staticmethod
    async def _connected(url: str) -> aio.Client:
        return aio.Client(url)

    def do(self, job: Fields) -> Fields:
        """Return the answer of a job. Raises what the client raises."""
        match job["do"]:
            case "write":
                return self._run(self._write(job))
            case "read":
                return self._run(self._read(job))
            case _:
                self._run(self._held.pop(job["subscription"]).close())
                return {}

    async def _write(self, job: Fields) -> Fields:
        jobs, kind = self._jobs, self._jobs.kind(job)
        async with await self._client.create_producer(job["topic"], **jobs.producer(job)) as producer:
            contents = [(jobs.values.value(kind, one), jobs.message(one)) for one in job["messages"]]
            if not job.get("transaction"):
                ids = await asyncio.gather(*(producer.send(content, **given) for content, given in contents))
            else:
                txn = await self._client.new_transaction()
                ids = await asyncio.gather(*(producer.send(content, **given, txn=txn) for content, given in contents))
                await getattr(txn, job["transaction"])()
        return {"ids": [jobs.id(one) for one in ids]}

    async def _read(self, job: Fields) -> Fields:
        jobs, kind = self._jobs, self._jobs.kind(job)
        consumer = await self._client.subscribe(job["topic"], job["subscription"], **jobs.consumer(job))
        messages: list[Fields] = []
        answer: Fields = {"messages": messages}
        try:
            txn = await self._client.new_transaction() if job.get("transaction") else None
            for _ in range(job["count"]):
                message = await consumer.receive(PATIENCE_MS)
                messages.append(jobs.shown(message, kind))
                match job.get("then"):
                    case "refuse":
                        await consumer.negative_acknowledge(message)
                    case "retry":
                        delay = timedelta(milliseconds=job["delay_ms"])
                        await consumer.reconsume_later(message, delay, job.get("properties"))
                    case _:
                        await consumer.acknowledge(message, txn=txn)
            if txn is not None:
                await getattr(txn, job["transaction"])()
            if job.get("nothing_more"):
                try:
                    answer["error"] = f"one more message: {(await consumer.receive(SILENCE_MS)).message_id()}"
                except aio.ClientTimeoutError:
                    pass
        finally:
            if job.get("hold"):
                self._held[job["subscription"]] = consumer
            else:
                await consumer.close()
        return answer


if __name__ == "__main__":
    answer_lines(AsyncioPeer(sys.argv[1]).do)
    os._exit(0)
