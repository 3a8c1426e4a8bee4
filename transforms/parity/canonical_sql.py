"""CF1 as SQL text, for PostgreSQL and DuckDB: columns, frames, digests, lanes.

Here belong the expressions that make bytes of a column; the queries made of them are in
``parity.sql``. What a column is stored as (``Storage``) belongs to a side, not to the contract: the
lake holds times as int64, a bulk read hands over what the server already made canonical.

Traps, each held by a test: PostgreSQL keeps NaN payloads; ``numeric_send`` sends the display scale;
DuckDB prints ``-.5000``, its ``epoch_us`` of infinity is null, its ``concat`` makes text of a blob.
"""

from collections.abc import Sequence
from enum import StrEnum

from transforms.parity.canonical import MICROS_TO_2000, ColumnType, Kind

BUCKETS = 4096
LANES = 4
_PG_NAN = r"'\x7ff8000000000000'::bytea"
_DUCK_NAN = r"'\x7F\xF8\x00\x00\x00\x00\x00\x00'::BLOB"
_DUCK_MAX = {8: r"'\x7F" + r"\xFF" * 7 + "'::BLOB", 4: r"'\x7F\xFF\xFF\xFF'::BLOB"}
_DUCK_MIN = {8: r"'\x80" + r"\x00" * 7 + "'::BLOB", 4: r"'\x80\x00\x00\x00'::BLOB"}


class Storage(StrEnum):
    """What a DuckDB relation holds of a column."""

    NATIVE = "native"  # the engine's own type
    MICROS = "micros"  # times as int64 microseconds since 1970, as in the lake's frames
    SENT = "sent"  # the body as the server sent it
    SPELLED = "spelled"  # a decimal as the text of its frame


def quoted(name: str) -> str:
    """A name as an identifier of either engine, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as a literal of either engine, whatever stands in it."""
    return "'" + text.replace("'", "''") + "'"


# --- PostgreSQL ---------------------------------------------------------------------------------


def postgres_sent(kind: ColumnType, column: str) -> tuple[str, Storage]:  # noqa: PLR0911
    """What a bulk read selects, and what a client then holds: drivers bend times and decimals."""
    match kind.kind:
        case Kind.INSTANT:
            return f"timestamptz_send({column})", Storage.SENT
        case Kind.LOCAL:
            return f"timestamp_send({column})", Storage.SENT
        case Kind.DATE:
            return f"date_send({column})", Storage.SENT
        case Kind.UUID:
            return f"uuid_send({column})", Storage.SENT
        case Kind.DECIMAL:
            return _postgres_decimal(kind, column), Storage.SPELLED
        case Kind.INT:
            return f"{column}::bigint", Storage.NATIVE
        case Kind.TEXT:
            return f"{column}::text", Storage.NATIVE
        case _:
            return column, Storage.NATIVE


def postgres_column(kind: ColumnType, column: str) -> str:
    """One column of a frame, a bytea that is never null."""
    return rf"coalesce('\x01'::bytea || {_postgres_body(kind, column)}, '\x00'::bytea)"


def _postgres_body(kind: ColumnType, column: str) -> str:  # noqa: PLR0911 - a line for each type
    match kind.kind:
        case Kind.INT:
            return f"int8send({column}::bigint)"
        case Kind.BOOL:
            return f"boolsend({column})"
        case Kind.FLOAT:
            sent = f"float8send({column} + 0.0::float8)"
            return f"case when {column} = 'NaN'::float8 then {_PG_NAN} else {sent} end"
        case Kind.TEXT:
            return _postgres_text(f"{column}::text")
        case Kind.DECIMAL:
            return _postgres_text(_postgres_decimal(kind, column))
        case Kind.BYTES:
            return f"int4send(octet_length({column})) || {column}"
        case _:
            return postgres_sent(kind, column)[0]


def _postgres_text(text: str) -> str:
    return f"int4send(octet_length({text})) || convert_to({text}, 'UTF8')"


def _postgres_decimal(kind: ColumnType, column: str) -> str:
    # A cast would round silently; a number that does not fit keeps all its digits and so shows.
    bound = f"1e{kind.precision - kind.scale}::numeric"
    fits = f"{column} = round({column}, {kind.scale}) and abs({column}) < {bound}"
    fitted = f"{column}::numeric({kind.precision},{kind.scale})::text"
    return f"case when {fits} then {fitted} else trim_scale({column})::text end"


def postgres_digest(frame: str) -> str:
    """The md5 of a frame, a bytea of 16."""
    return f"decode(md5({frame}), 'hex')"


def postgres_lane(digest: str, lane: int) -> str:
    """An unsigned little-endian word of a digest, a bigint."""
    return " + ".join(
        f"(get_byte({digest}, {4 * lane + j})::bigint << {8 * j})" for j in range(4)
    ).join("()")


def postgres_bucket(digest: str) -> str:
    """The bucket of a key digest: the low 12 bits of lane 0, an integer."""
    return f"(get_byte({digest}, 0) | ((get_byte({digest}, 1) & 15) << 8))"


def postgres_micros(column: str) -> str:
    """A finite instant as microseconds since 1970, a numeric."""
    return f"(extract(epoch from {column})::numeric * 1000000)"


# --- DuckDB -------------------------------------------------------------------------------------


def duckdb_column(kind: ColumnType, column: str, storage: Storage = Storage.NATIVE) -> str:
    """One column of a frame, a BLOB that is never null."""
    return rf"coalesce('\x01'::BLOB || {_duckdb_body(kind, column, storage)}, '\x00'::BLOB)"


def _duckdb_body(kind: ColumnType, column: str, storage: Storage) -> str:
    match storage:
        case Storage.SENT:
            return column
        case Storage.SPELLED:
            return _duckdb_text(column)
        case Storage.MICROS:
            return f"({column} - {MICROS_TO_2000})::BIT::BLOB"
        case Storage.NATIVE:
            return _duckdb_native(kind, column)


def _duckdb_native(kind: ColumnType, column: str) -> str:  # noqa: PLR0911 - one line for each type
    match kind.kind:
        case Kind.INT:
            return f"{column}::BIGINT::BIT::BLOB"
        case Kind.BOOL:
            return f"{column}::BIT::BLOB"
        case Kind.FLOAT:
            bits = f"({column} + 0.0::DOUBLE)::BIT::BLOB"
            return f"case when isnan({column}) then {_DUCK_NAN} else {bits} end"
        case Kind.INSTANT | Kind.LOCAL:
            return _duckdb_finite(column, f"(epoch_us({column}) - {MICROS_TO_2000})::BIT::BLOB", 8)
        case Kind.DATE:
            days = f"({column} - DATE '2000-01-01')::INTEGER::BIT::BLOB"
            return _duckdb_finite(column, days, 4)
        case Kind.TEXT:
            return _duckdb_text(column)
        case Kind.BYTES:
            return f"octet_length({column})::INTEGER::BIT::BLOB || {column}"
        case Kind.DECIMAL:
            return _duckdb_text(_duckdb_decimal(kind, column))
        case Kind.UUID:
            return f"{column}::BLOB"


def duckdb_plain(kind: ColumnType, column: str, storage: Storage = Storage.NATIVE) -> str:
    """A value that two rows share exactly if they share the column of a frame; cheap to hash.

    Of the same type in every storage. Texts are bytes: a collation must not make them equal.
    """
    if storage is Storage.NATIVE:
        match kind.kind:
            case Kind.INT:
                return f"{column}::BIGINT"
            case Kind.BOOL | Kind.FLOAT | Kind.BYTES:
                return column
            case Kind.TEXT:
                return f"encode({column})"
            case Kind.DECIMAL:
                return f"encode({_duckdb_decimal(kind, column)})"
    return (
        f"encode({column})" if storage is Storage.SPELLED else _duckdb_body(kind, column, storage)
    )


def duckdb_micros(column: str, storage: Storage) -> str:
    """A finite instant as microseconds since 1970, a BIGINT."""
    match storage:
        case Storage.SENT:
            return f"({column}::BIT::BIGINT + {MICROS_TO_2000})"
        case Storage.MICROS:
            return column
        case _:
            return f"epoch_us({column})"


def _duckdb_finite(column: str, body: str, size: int) -> str:
    return (
        f"case when isfinite({column}) then {body} when {column} > 'epoch'"
        f" then {_DUCK_MAX[size]} when {column} < 'epoch' then {_DUCK_MIN[size]} end"
    )


def _duckdb_text(text: str) -> str:
    return f"octet_length(encode({text}))::INTEGER::BIT::BLOB || encode({text})"


def _duckdb_decimal(kind: ColumnType, column: str) -> str:
    text = f"{column}::DECIMAL({kind.precision},{kind.scale})::VARCHAR"
    if kind.precision > kind.scale:
        return text
    return rf"regexp_replace({text}, '^(-?)\.', '\10.')"  # DuckDB prints no digit before the point


def duckdb_lane(digest: str, lane: int) -> str:
    """An unsigned little-endian word of an ``md5_number``, a BIGINT."""
    return f"(({digest} >> {32 * lane}::UHUGEINT) & 4294967295)::BIGINT"


def joined(columns: Sequence[str]) -> str:
    """Columns of a frame, or frames, one after another, in either engine."""
    return " || ".join(columns)
