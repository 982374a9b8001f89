"""A Python client without an event loop as one side of the matrix: the official one, or ours.

``python -m tests.interop.threaded_peer pulsar|magnetar URL``; a job a line on stdin, its answer a line on stdout.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import Any

from tests.interop.encodings import Fields
from tests.interop.job_lines import answer_lines
from tests.interop.python_jobs import PATIENCE_MS, SILENCE_MS, PythonJobs


class ThreadedPeer:
    """Does jobs with one client."""

    def __init__(self, library: str, url: str) -> None:
        self._jobs = PythonJobs(library)
        of = self._jobs.of
        self._client: Any = of.Client(url, logger=of.ConsoleLogger(of.LoggerLevel.Error))
        self._held: dict[str, Any] = {}

    def do(self, job: Fields) -> Fields:
        """Return the answer of a job. Raises what the client raises."""
        match job["do"]:
            case "write":
                return self._write(job)
            case "read":
                return self._read(job)
            case _:
                self._held.pop(job["subscription"]).close()
                return {}

    def _write(self, job: Fields) -> Fields:
        jobs, kind = self._jobs, self._jobs.kind(job)
        ids: dict[int, Fields] = {}
        failed: list[str] = []
        producer = self._client.create_producer(job["topic"], **jobs.producer(job))
        if job.get("transaction"):
            txn = self._client.new_transaction()
            for number, one in enumerate(job["messages"]):
                sent = producer.send(jobs.values.value(kind, one), **jobs.message(one), txn=txn)
                ids[number] = jobs.id(sent)
            getattr(txn, job["transaction"])()
        else:

            def done(number: int, result: Any, message_id: Any) -> None:
                if message_id is None or getattr(result, "name", str(result)) != "Ok":
                    failed.append(str(result))
                else:
                    ids[number] = jobs.id(message_id)

            for number, one in enumerate(job["messages"]):
                producer.send_async(
                    jobs.values.value(kind, one),
                    lambda *given, number=number: done(number, *given),
                    **jobs.message(one),
                )
            producer.flush()
        producer.close()
        if failed:
            return {"error": failed[0]}
        return {"ids": [ids[number] for number in range(len(job["messages"]))]}

    def _read(self, job: Fields) -> Fields:
        jobs, kind = self._jobs, self._jobs.kind(job)
        consumer = self._client.subscribe(job["topic"], job["subscription"], **jobs.consumer(job))
        messages: list[Fields] = []
        answer: Fields = {"messages": messages}
        try:
            txn = self._client.new_transaction() if job.get("transaction") else None
            for _ in range(job["count"]):
                message = consumer.receive(PATIENCE_MS)
                messages.append(jobs.shown(message, kind))
                match job.get("then"):
                    case "refuse":
                        consumer.negative_acknowledge(message)
                    case "retry":
                        delay = timedelta(milliseconds=job["delay_ms"])
                        consumer.reconsume_later(message, delay, job.get("properties"))
                    case _ if txn is not None:
                        consumer.acknowledge(message, txn=txn)
                    case _:
                        consumer.acknowledge(message)
            if txn is not None:
                getattr(txn, job["transaction"])()
            if job.get("nothing_more"):
                try:
                    answer["error"] = f"one more message: {consumer.receive(SILENCE_MS).message_id()}"
                except jobs.of.exceptions.Timeout:
                    pass
        finally:
            if job.get("hold"):
                self._held[job["subscription"]] = consumer
            else:
                consumer.close()
        return answer


if __name__ == "__main__":
    answer_lines(ThreadedPeer(*sys.argv[1:]).do)
    # without closing: pulsar-client 3.13.0 crashes at times where dead letters are on their way
    os._exit(0)
