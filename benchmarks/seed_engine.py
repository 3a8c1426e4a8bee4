"""The engine that people write first: rows one by one as dictionaries, hashed in a thread pool.

It follows the page it was taken from: a cursor, a bounded queue, batches of 5,000, SHA-256 over
``name=repr(value)`` of the sorted names. It is here to be compared with, and compares nothing.
"""

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg

BATCH = 5_000
WORKERS = 2


def checksums(rows: list[dict[str, Any]]) -> list[str]:
    """A digest for each row."""
    canonical = ("\x1f".join(f"{name}={row[name]!r}" for name in sorted(row)) for row in rows)
    return [hashlib.sha256(text.encode()).hexdigest() for text in canonical]


def read_and_hash(dsn: str, query: str) -> dict[str, Any]:
    """Read and hash all rows; returns how many."""
    return asyncio.run(_run(dsn, query))


async def _run(dsn: str, query: str) -> dict[str, Any]:
    loop, hashed = asyncio.get_running_loop(), 0
    queue: asyncio.Queue[list[dict[str, Any]] | None] = asyncio.Queue(maxsize=8)
    connection = await asyncpg.connect(dsn)

    async def consume(pool: ThreadPoolExecutor) -> None:
        nonlocal hashed
        while (rows := await queue.get()) is not None:
            digests = await loop.run_in_executor(pool, checksums, rows)
            hashed += len(digests)

    with ThreadPoolExecutor(WORKERS) as pool:
        consumers = [asyncio.create_task(consume(pool)) for _ in range(WORKERS)]
        batch: list[dict[str, Any]] = []
        async with connection.transaction():
            async for record in connection.cursor(query, prefetch=BATCH):
                batch.append(dict(record))
                if len(batch) >= BATCH:
                    await queue.put(batch)
                    batch = []
        await queue.put(batch)
        for _ in consumers:
            await queue.put(None)
        await asyncio.gather(*consumers)
    await connection.close()
    return {"rows": hashed}
