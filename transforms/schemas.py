"""The shared words: tables, columns, types, states and reasons, each named here once.

Here belongs every name that two modules must agree on, the schema of every frame, the contract of
published windows in its order, and the renaming between frames (Int64 microseconds, ``event_us``)
and stores (timestamps, ``event``). What a column means is said in the contract of semantics; how it
is computed is said where it is computed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import polars as pl

if TYPE_CHECKING:
    from transforms.spec import StreamSpec, ValueType

# Tables, and assets of the same names.
STAGED_EVENTS: Final = "staged_events"
REJECTED_ROWS: Final = "rejected_rows"
ORDERED_EVENTS: Final = "ordered_events"
DEAD_LETTERS: Final = "dead_letters"
DUPLICATES: Final = "duplicates"
HELD_EVENTS: Final = "held_events"
WATERMARKS: Final = "watermarks"
WINDOW_AGGREGATES: Final = "window_aggregates"
PUBLISHED_WINDOWS: Final = "published_windows"
AMENDED_WINDOWS: Final = "amended_windows"
WINDOW_HISTORY: Final = "window_history"
ORDER_AUDIT: Final = "order_audit"
LATENESS_PROFILE: Final = "lateness_profile"
GRACE_ADVICE: Final = "grace_advice"
TARGET_PARITY: Final = "target_parity"
TRACK_DIFFERENCE: Final = "track_difference"
# Tables the lake keeps beside them: files once seen, what of them is in a partition, and in which
# order the workers that publish wrote its windows.
SOURCE_FILES: Final = "source_files"
STAGED_SOURCES: Final = "staged_sources"
PUBLICATION_STAMPS: Final = "publication_stamps"

# States of a row, as in the books and in `books.json`.
STAGED: Final = "staged"
ORDERED: Final = "ordered"
DEAD_LETTER: Final = "dead_letters"
DUPLICATE: Final = "duplicates"
REJECTED: Final = "rejected"
HELD: Final = "held"
STATES: Final = (STAGED, ORDERED, DEAD_LETTER, DUPLICATE, REJECTED, HELD)

# Why a row is a dead letter.
BEHIND_WATERMARK: Final = "behind_watermark"
LATE_CLOSED_WINDOW: Final = "late_closed_window"
BUFFER_OVERFLOW: Final = "buffer_overflow"
FUTURE_TIMESTAMP: Final = "future_timestamp"
CONFLICTING_DUPLICATE: Final = "conflicting_duplicate"
INVALID_VALUE: Final = "invalid_value"
COUNTED_DEAD_LETTER_REASONS: Final = (BEHIND_WATERMARK, LATE_CLOSED_WINDOW, BUFFER_OVERFLOW)
DEAD_LETTER_REASONS: Final = (
    *COUNTED_DEAD_LETTER_REASONS,
    FUTURE_TIMESTAMP,
    CONFLICTING_DUPLICATE,
    INVALID_VALUE,
)

# Why a row is rejected, in the order in which the reasons are tested.
MALFORMED_RECORD: Final = "malformed_record"
MISSING_KEY: Final = "missing_key"
MISSING_EVENT_TIME: Final = "missing_event_time"
UNREADABLE_EVENT_TIME: Final = "unreadable_event_time"
IMPLAUSIBLE_EVENT_TIME: Final = "implausible_event_time"
MISSING_ARRIVAL_TIME: Final = "missing_arrival_time"
REJECTION_REASONS: Final = (
    MALFORMED_RECORD,
    MISSING_KEY,
    MISSING_EVENT_TIME,
    UNREADABLE_EVENT_TIME,
    IMPLAUSIBLE_EVENT_TIME,
    MISSING_ARRIVAL_TIME,
)

# Why a window has a revision.
CLOSED: Final = "closed"
FLUSH: Final = "flush"
LATE_ROWS: Final = "late_rows"
RESOLVED: Final = "resolved"
RESTAGED: Final = "restaged"
WITHDRAWN: Final = "withdrawn"
REVISION_REASONS: Final = (CLOSED, FLUSH, LATE_ROWS, RESOLVED, RESTAGED, WITHDRAWN)

# Columns of rows.
SEQ: Final = "seq"
KEY: Final = "key"
EVENT_US: Final = "event_us"
ORIGINAL_EVENT_US: Final = "original_event_us"
ARRIVAL_US: Final = "arrival_us"
PROFILE: Final = "profile"
UNREADABLE: Final = "unreadable"
IS_LATE: Final = "is_late"
IS_DEAD_LETTER: Final = "is_dead_letter"
REFUSED_AT_US: Final = "refused_at_us"
REASON: Final = "reason"
WATERMARK_US: Final = "watermark_us"
LATENESS_US: Final = "lateness_us"
WINDOWS_MISSED: Final = "windows_missed"
WINDOWS_TOTAL: Final = "windows_total"
DUPLICATE_OF_SEQ: Final = "duplicate_of_seq"
SOURCE: Final = "source"
LINE: Final = "line"
DETAIL: Final = "detail"
RAW: Final = "raw"
LAST_ARRIVAL_US: Final = "last_arrival_us"
MAX_EVENT_US: Final = "max_event_us"

# Columns of windows.
STREAM: Final = "stream"
WINDOW: Final = "window"
WINDOW_START_US: Final = "window_start_us"
WINDOW_END_US: Final = "window_end_us"
EVENT_COUNT: Final = "event_count"
LATE_ARRIVAL_COUNT: Final = "late_arrival_count"
DEAD_LETTER_COUNT: Final = "dead_letter_count"
DEAD_LETTER_FRACTION: Final = "dead_letter_fraction"
FIRST_EVENT_US: Final = "first_event_us"
LAST_EVENT_US: Final = "last_event_us"
REVISION: Final = "revision"
INPUT_DIGEST: Final = "input_digest"
KNOWN_AT_US: Final = "known_at_us"
PUBLISHED_AT_US: Final = "published_at_us"
RUN_ID: Final = "run_id"

# What names a window; with `revision`, what names a row of the history.
WINDOW_IDENTITY: Final = (STREAM, WINDOW, KEY, WINDOW_START_US)

# Columns the lake and the proof of parity add beside those of a frame.
PARTITION: Final = "partition"
ARRIVAL_PARTITION: Final = "arrival_partition"
EVENT_PARTITION: Final = "event_partition"
SHARD: Final = "shard"
# Set in the one row of a partition that says what the partition was made from, null elsewhere.
MARK: Final = "mark"
STORE_COLUMNS: Final = (
    *(PARTITION, ARRIVAL_PARTITION, EVENT_PARTITION, SHARD, MARK),
    *("_digest", "_bucket"),
)

# Instants: Int64 microseconds UTC in frames, timestamps under the other name in stores.
# `lateness_us` is a duration and stays as it is.
STORED_NAMES: Final[Mapping[str, str]] = {
    name: name.removesuffix("_us")
    for name in (
        EVENT_US,
        ORIGINAL_EVENT_US,
        ARRIVAL_US,
        WATERMARK_US,
        REFUSED_AT_US,
        LAST_ARRIVAL_US,
        MAX_EVENT_US,
        WINDOW_START_US,
        WINDOW_END_US,
        FIRST_EVENT_US,
        LAST_EVENT_US,
        KNOWN_AT_US,
        PUBLISHED_AT_US,
    )
}
FRAME_NAMES: Final[Mapping[str, str]] = {stored: name for name, stored in STORED_NAMES.items()}
STORED_INSTANT: Final = pl.Datetime("us", "UTC")

# The names of a key, and of the id columns that are kept only as part of the identity.
KEY_BAR: Final = "|"
ID_PREFIX: Final = "id_"

COUNT: Final = "count"
STATISTICS: Final = (
    *(COUNT, "sum", "mean", "min", "max", "std", "first", "last"),
    *("rate", "time_weighted_mean"),
)
_SAME_TYPE_STATISTICS: Final = ("min", "max", "first", "last")
_DECIMAL_DIGITS: Final = 38

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

_LEADING_WINDOW_COLUMNS: Final = (STREAM, WINDOW, KEY)
_TRAILING_WINDOW_COLUMNS: Final[Mapping[str, type[pl.DataType]]] = {
    LATE_ARRIVAL_COUNT: pl.Int64,
    DEAD_LETTER_COUNT: pl.Int64,
    DEAD_LETTER_FRACTION: pl.Float64,
    FIRST_EVENT_US: pl.Int64,
    LAST_EVENT_US: pl.Int64,
    REVISION: pl.Int64,
    REASON: pl.String,
    INPUT_DIGEST: pl.String,
    KNOWN_AT_US: pl.Int64,
}
_FRAME_COLUMNS: Final = (
    *(SEQ, KEY, EVENT_US, ORIGINAL_EVENT_US, ARRIVAL_US, PROFILE, UNREADABLE),
    *(IS_LATE, IS_DEAD_LETTER, REFUSED_AT_US, REASON, WATERMARK_US, LATENESS_US),
    *(WINDOWS_MISSED, WINDOWS_TOTAL, DUPLICATE_OF_SEQ, LAST_ARRIVAL_US, MAX_EVENT_US),
    *(*_LEADING_WINDOW_COLUMNS, WINDOW_START_US, WINDOW_END_US, EVENT_COUNT),
    *(*_TRAILING_WINDOW_COLUMNS, PUBLISHED_AT_US, RUN_ID),
)
# No key part, value or carried column may take one of these, whatever the case of its letters.
RESERVED_NAMES: Final = frozenset({*_FRAME_COLUMNS, *STORED_NAMES.values(), *STORE_COLUMNS})


def row_schema(spec: "StreamSpec") -> pl.Schema:
    """Return what is kept of a row in every state: its columns, in order."""
    columns = spec.columns
    schema: dict[str, pl.DataType] = {SEQ: pl.Int64(), KEY: pl.String()}
    schema |= dict.fromkeys(spec.key_parts, pl.String())
    schema[EVENT_US] = pl.Int64()
    if spec.resolution_us is not None:
        schema[ORIGINAL_EVENT_US] = pl.Int64()
    schema[ARRIVAL_US] = pl.Int64()
    schema |= {name: value.dtype for name, value in columns.values.items()}
    schema |= dict.fromkeys((*columns.carry, *columns.id_columns), pl.String())
    return pl.Schema(schema)


def row_columns(spec: "StreamSpec") -> tuple[str, ...]:
    """Return the names of ``row_schema``."""
    return tuple(row_schema(spec))


def staged_schema(spec: "StreamSpec") -> pl.Schema:
    """Return the columns of a staged row: the row, its profile after its arrival, the unread."""
    schema = dict(row_schema(spec))
    if spec.profiles.by is None:
        return pl.Schema({**schema, UNREADABLE: pl.String()})
    names = list(schema)
    cut = names.index(ARRIVAL_US) + 1
    before = {name: schema[name] for name in names[:cut]}
    after = {name: schema[name] for name in names[cut:]}
    return pl.Schema({**before, PROFILE: pl.String(), **after, UNREADABLE: pl.String()})


def ordered_schema(spec: "StreamSpec") -> pl.Schema:
    """Return the columns of ordered and of held rows."""
    return pl.Schema({**row_schema(spec), IS_LATE: pl.Boolean()})


def counted_schema(spec: "StreamSpec") -> pl.Schema:
    """Return the columns of the rows that windows count, from whatever table they come."""
    return pl.Schema(
        {**ordered_schema(spec), IS_DEAD_LETTER: pl.Boolean(), REFUSED_AT_US: pl.Int64()}
    )


def dead_letter_schema(spec: "StreamSpec") -> pl.Schema:
    """Return the columns of dead letters: the whole row, and what refused it."""
    profile = {} if spec.profiles.by is None else {PROFILE: pl.String()}
    return pl.Schema(
        {
            **row_schema(spec),
            **profile,
            UNREADABLE: pl.String(),
            IS_LATE: pl.Boolean(),
            REASON: pl.String(),
            WATERMARK_US: pl.Int64(),
            LATENESS_US: pl.Int64(),
            WINDOWS_MISSED: pl.Int64(),
            WINDOWS_TOTAL: pl.Int64(),
        }
    )


def duplicate_schema(spec: "StreamSpec") -> pl.Schema:
    """Return the columns of duplicates: the row, and the ``seq`` it repeats."""
    return pl.Schema({**row_schema(spec), DUPLICATE_OF_SEQ: pl.Int64()})


def rejected_schema() -> pl.Schema:
    """Return the columns of rejected rows; ``line`` counts from 1, ``arrival_us`` may be null."""
    return pl.Schema(
        {
            SEQ: pl.Int64(),
            ARRIVAL_US: pl.Int64(),
            SOURCE: pl.String(),
            LINE: pl.Int64(),
            REASON: pl.String(),
            DETAIL: pl.String(),
            RAW: pl.String(),
        }
    )


def watermark_schema() -> pl.Schema:
    """Return the columns of the state: one row for each key that ever had a moving row."""
    return pl.Schema(
        {
            KEY: pl.String(),
            WATERMARK_US: pl.Int64(),
            LAST_ARRIVAL_US: pl.Int64(),
            PROFILE: pl.String(),
            MAX_EVENT_US: pl.Int64(),
        }
    )


def window_schema(spec: "StreamSpec") -> pl.Schema:
    """Return the contract of a published window, in its order."""
    return pl.Schema(
        {
            **dict.fromkeys((*_LEADING_WINDOW_COLUMNS, *spec.key_parts), pl.String()),
            **dict.fromkeys((WINDOW_START_US, WINDOW_END_US, EVENT_COUNT), pl.Int64()),
            **statistic_schema(spec),
            **{name: dtype() for name, dtype in _TRAILING_WINDOW_COLUMNS.items()},
        }
    )


def window_history_schema(spec: "StreamSpec") -> pl.Schema:
    """Return the contract of a revision: the window, when it was said, and by which run."""
    return pl.Schema({**window_schema(spec), PUBLISHED_AT_US: pl.Int64(), RUN_ID: pl.String()})


def statistic_schema(spec: "StreamSpec") -> pl.Schema:
    """Return ``<v>_count`` and ``<v>_<statistic>`` of each value, in the order of the spec."""
    schema: dict[str, pl.DataType] = {}
    for value, kind in spec.columns.values.items():
        for statistic in value_statistics(spec.aggregates.get(value, ())):
            schema[statistic_column(value, statistic)] = statistic_dtype(kind, statistic)
    return pl.Schema(schema)


def value_statistics(declared: Sequence[str]) -> tuple[str, ...]:
    """Return the statistics published for a value: ``count`` always, and first."""
    return (COUNT, *(statistic for statistic in declared if statistic != COUNT))


def statistic_column(value: str, statistic: str) -> str:
    """Return the name of a published statistic, such as ``stage_m_p99.9``."""
    return f"{value}_{statistic}"


def statistic_dtype(kind: "ValueType", statistic: str) -> pl.DataType:
    """Return the type of a published statistic; a bool counts as the whole number 0 or 1."""
    if statistic == COUNT:
        return pl.Int64()
    exact = pl.Int64() if kind.kind == "bool" else kind.dtype
    if statistic in _SAME_TYPE_STATISTICS:
        return exact
    if statistic != "sum":
        return pl.Float64()
    return pl.Decimal(_DECIMAL_DIGITS, kind.scale or 0) if kind.kind == "decimal" else exact


def fixed_window_columns() -> tuple[str, ...]:
    """Return the columns every published window and revision has, under each of their names."""
    names = (WINDOW_START_US, WINDOW_END_US, EVENT_COUNT, *_TRAILING_WINDOW_COLUMNS)
    frame = (*_LEADING_WINDOW_COLUMNS, *names, PUBLISHED_AT_US, RUN_ID)
    return (*frame, *(STORED_NAMES[name] for name in frame if name in STORED_NAMES))


def to_stored(frame: Frame) -> Frame:
    """Rename and cast the instants of a frame for a store: ``event_us`` to timestamps ``event``."""
    instants = [name for name in _names(frame) if name in STORED_NAMES]
    casts = [pl.col(name).cast(STORED_INSTANT) for name in instants]
    return frame.with_columns(casts).rename({name: STORED_NAMES[name] for name in instants})


def from_stored(frame: Frame) -> Frame:
    """Undo ``to_stored``, whatever time unit or display zone a store gave its timestamps."""
    instants = [name for name in _names(frame) if name in FRAME_NAMES]
    casts = [pl.col(name).dt.timestamp("us") for name in instants]
    return frame.with_columns(casts).rename({name: FRAME_NAMES[name] for name in instants})


def _names(frame: pl.DataFrame | pl.LazyFrame) -> Iterable[str]:
    return frame.collect_schema().names()
