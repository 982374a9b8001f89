"""One large message as the entries of its chunks."""

from __future__ import annotations

from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import EntryMetadata, build_entry


def chunks(
    uuid: str, value: bytes, pieces: int, *, at: int = 0, kind: CompressionType = CompressionType.NONE
) -> list[bytes]:
    """The entries of one message; ``pieces`` 1: not in chunks at all."""
    packed = compress(kind, value)
    base = EntryMetadata("p", 7, at, compression=kind, uncompressed_size=len(value), partition_key="k")
    if pieces == 1:
        return [build_entry(base, packed)]
    cuts = [len(packed) * number // pieces for number in range(pieces + 1)]
    return [
        build_entry(
            EntryMetadata(
                "p", 7, at, compression=kind, uncompressed_size=len(value), partition_key="k",
                uuid=uuid, num_chunks_from_msg=pieces, chunk_id=number, total_chunk_msg_size=len(packed),
            ),
            packed[cuts[number] : cuts[number + 1]],
        )
        for number in range(pieces)
    ]  # fmt: skip
