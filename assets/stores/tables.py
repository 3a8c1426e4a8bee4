"""The tables of a stream in the lake: their schemas, marks and shards.

Here belongs what is stored of each table beside the frames of ``transforms.schemas``. What a mark
is for, and when it is set, is in ``unit_of_work``; what it says is in ``marks``.
"""

from collections.abc import Callable, Mapping
from typing import Final

import polars as pl

from assets.stores.lake import Lake
from assets.stores.unit_of_work import UnitOfWork
from transforms import schemas
from transforms.digest import LANE_0, row_lanes
from transforms.grace.report import ADVICE_SCHEMA
from transforms.lateness.profile import PROFILE_SCHEMA
from transforms.spec import StreamSpec
from transforms.tracks import difference_schema

# Tables cut by event partition; all others are cut by arrival partition.
EVENT_TABLES: Final = (
    schemas.WINDOW_HISTORY,
    schemas.AMENDED_WINDOWS,
    schemas.TARGET_PARITY,
    schemas.TRACK_DIFFERENCE,
)
# Tables that the tracks of a stream have in common, under the name of the stream as declared.
SHARED_TABLES: Final = (schemas.STAGED_EVENTS, schemas.REJECTED_ROWS, schemas.STAGED_SOURCES)

# Tables of a whole stream, which no partition cuts: they are kept under this name.
WHOLE: Final = "all"

# Columns of `staged_sources`, beside what names a file.
NAME: Final = "name"
ORDINAL: Final = "ordinal"
FINGERPRINT: Final = "fingerprint"
STAGED_COUNT: Final = "staged_rows"
REJECTED_COUNT: Final = "rejected_rows"
DIGEST: Final = "digest"
# Columns of `publication_stamps`: a batch for each row, the lane that it was written in,
# how many of its revisions are of the partition, and its place in three orders.
BATCH: Final = "batch"
LANE: Final = "lane"
REVISIONS: Final = "revisions"
HANDED_OUT: Final = "handed_out"
BEGUN: Final = "begun"
LANDED: Final = "landed"
STAMPS: Final = (HANDED_OUT, BEGUN, LANDED)
# Columns of `order_audit`: an order that was looked at for each row (what is ordered, and by which
# column), its pairs, how its keys share the work, and the worst keys as JSON.
ORDER_OF: Final = "order_of"
ORDERED_BY: Final = "ordered_by"
PAIRS: Final = "pairs"
INVERTED: Final = "inverted"
SAME_KEY_PAIRS: Final = "same_key_pairs"
SAME_KEY_INVERTED: Final = "same_key_inverted"
KEYS: Final = "keys"
EFFECTIVE_KEYS: Final = "effective_keys"
HEAVIEST_KEY: Final = "heaviest_key"
HEAVIEST_SHARE: Final = "heaviest_share"
WORST_KEYS: Final = "worst_keys"
# Columns of `target_parity`: what the proof of a partition said; all but its cells is JSON.
VERDICT: Final = "verdict"
SOURCE_ROWS: Final = "source_rows"
TARGET_ROWS: Final = "target_rows"
SOURCE_ROOT: Final = "source_root"
TARGET_ROOT: Final = "target_root"
NUMBER: Final = "publication_number"
SUMMARY: Final = "summary"
# Columns of `grace.advice`, beside the curves: the arrival partitions that they were read off.
FIRST_PARTITION: Final = "first_partition"
LAST_PARTITION: Final = "last_partition"
# Columns of `published_windows` and `amended_windows`: how many windows of a name there are.
WINDOWS: Final = "windows"

_SOURCES: Final = pl.Schema(
    {
        NAME: pl.String(),
        ORDINAL: pl.Int64(),
        FINGERPRINT: pl.String(),
        STAGED_COUNT: pl.Int64(),
        REJECTED_COUNT: pl.Int64(),
        DIGEST: pl.String(),
    }
)
_STAMPS: Final = pl.Schema(dict.fromkeys((BATCH, LANE, REVISIONS, *STAMPS), pl.Int64()))
_ORDERS: Final = pl.Schema(
    {
        **dict.fromkeys((ORDER_OF, ORDERED_BY), pl.String()),
        **dict.fromkeys((PAIRS, INVERTED, SAME_KEY_PAIRS, SAME_KEY_INVERTED, KEYS), pl.Int64()),
        **dict.fromkeys((EFFECTIVE_KEYS, HEAVIEST_SHARE), pl.Float64()),
        **dict.fromkeys((HEAVIEST_KEY, WORST_KEYS), pl.String()),
    }
)
_PROOFS: Final = pl.Schema(
    {
        VERDICT: pl.String(),
        **dict.fromkeys((SOURCE_ROWS, TARGET_ROWS), pl.Int64()),
        **dict.fromkeys((SOURCE_ROOT, TARGET_ROOT), pl.String()),
        NUMBER: pl.Int64(),
        SUMMARY: pl.String(),
    }
)
_ADVICE: Final = pl.Schema(
    {**ADVICE_SCHEMA, **dict.fromkeys((FIRST_PARTITION, LAST_PARTITION), pl.String())}
)
_COUNTS: Final = pl.Schema({schemas.WINDOW: pl.String(), WINDOWS: pl.Int64()})

_MARKED: Final[Mapping[str, Callable[[StreamSpec], pl.Schema]]] = {
    schemas.STAGED_SOURCES: lambda _: _SOURCES,
    schemas.WATERMARKS: lambda _: schemas.watermark_schema(),
    schemas.WINDOW_AGGREGATES: schemas.window_schema,
    schemas.PUBLISHED_WINDOWS: lambda _: _COUNTS,
    schemas.ORDER_AUDIT: lambda _: _ORDERS,
    schemas.AMENDED_WINDOWS: lambda _: _COUNTS,
    schemas.TARGET_PARITY: lambda _: _PROOFS,
    schemas.TRACK_DIFFERENCE: difference_schema,
}
_PLAIN: Final[Mapping[str, Callable[[StreamSpec], pl.Schema]]] = {
    schemas.STAGED_EVENTS: schemas.staged_schema,
    schemas.REJECTED_ROWS: lambda _: schemas.rejected_schema(),
    schemas.ORDERED_EVENTS: schemas.ordered_schema,
    schemas.DEAD_LETTERS: schemas.dead_letter_schema,
    schemas.DUPLICATES: schemas.duplicate_schema,
    schemas.HELD_EVENTS: schemas.ordered_schema,
    schemas.WINDOW_HISTORY: schemas.window_history_schema,
    schemas.PUBLICATION_STAMPS: lambda _: _STAMPS,
    schemas.LATENESS_PROFILE: lambda _: PROFILE_SCHEMA,
    schemas.GRACE_ADVICE: lambda _: _ADVICE,
}
# All that a stream may have in the lake.
STORED_TABLES: Final = (*_MARKED, *_PLAIN, schemas.SOURCE_FILES)


def frame_schema(spec: StreamSpec, table: str) -> pl.Schema:
    """Return the schema of the rows of a table, without marks."""
    return {**_MARKED, **_PLAIN}[table](spec)


def stored_schema(spec: StreamSpec, table: str) -> pl.Schema:
    """Return the schema of the frames a table is made of, with the column of marks."""
    mark = {schemas.MARK: pl.String()} if table in _MARKED else {}
    return pl.Schema({**frame_schema(spec, table), **mark})


def stream_of(spec: StreamSpec, table: str) -> str:
    """Return the name of the stream that a table is kept under: all tracks share what is staged."""
    return spec.staged_as if table in SHARED_TABLES else spec.name


def unit_of(lake: Lake, spec: StreamSpec, marked: str) -> UnitOfWork:
    """Return a unit of work that sets its marks in the table ``marked``."""
    return UnitOfWork(
        lake,
        spec.name,
        marked,
        lambda table: stored_schema(spec, table),
        shards=spec.shards,
        shared={table: stream_of(spec, table) for table in SHARED_TABLES},
    )


def by_shard(spec: StreamSpec, rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Return the rows of each shard, in their order; a key is always in the same one."""
    if spec.shards == 1:
        return [rows]
    keys = rows.select(schemas.KEY).unique()
    shards = keys.with_columns(
        (row_lanes(keys, [schemas.KEY])[LANE_0] % spec.shards).alias(schemas.SHARD)
    )
    placed = rows.join(shards, on=schemas.KEY, how="left", maintain_order="left")
    return [
        placed.filter(pl.col(schemas.SHARD) == shard).drop(schemas.SHARD)
        for shard in range(spec.shards)
    ]
