"""Which rows cannot be staged, why, and what is said about it (SEMANTICS 2.1).

Belongs here: the six reasons in the order in which they are tested, and their messages. Whatever
reads the columns is in `staging`.
"""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from transforms.reading.civil import DAY_US
from transforms.reading.number_times import UNIT_EXPONENTS
from transforms.reading.raw_rows import FAULT, field
from transforms.reading.texts import to_text
from transforms.reading.times import ISO8601, read_times
from transforms.schemas import (
    ARRIVAL_US,
    DETAIL,
    EVENT_US,
    IMPLAUSIBLE_EVENT_TIME,
    KEY,
    MALFORMED_RECORD,
    MISSING_ARRIVAL_TIME,
    MISSING_EVENT_TIME,
    MISSING_KEY,
    RAW,
    REASON,
    SEQ,
    SOURCE,
    UNREADABLE_EVENT_TIME,
    rejected_schema,
)
from transforms.spec import StreamSpec, TimeColumn

_SHOWN = 60
_FIRST_SHOWN_US = -719_162 * DAY_US
_LAST_SHOWN_US = 2_932_897 * DAY_US - 1


class Split(NamedTuple):
    """Rows that can be staged, with all columns, and `schemas.rejected_schema` of the rest."""

    readable: pl.DataFrame
    rejected: pl.DataFrame


def reject(spec: StreamSpec, rows: pl.DataFrame, *, source: str) -> Split:
    """Split raw rows that have got their key, event and arrival time (null where unreadable)."""
    if _all_readable(spec, rows):
        return Split(rows, pl.DataFrame(schema=rejected_schema()))
    tests = _tests(spec, rows)
    refused = pl.any_horizontal([test for _, test in tests])
    reason = pl.coalesce([pl.when(test).then(pl.lit(name)) for name, test in tests])
    bad = rows.filter(refused).with_columns(
        reason.alias(REASON),
        pl.lit(source).alias(SOURCE),
        pl.col(RAW).str.strip_chars_end("\r\n"),
    )
    told = [
        part.with_columns(_DETAILS[str(name)](spec, part).alias(DETAIL))
        for (name,), part in bad.group_by(REASON, maintain_order=True)
    ]
    rejected = pl.concat(told).sort(SEQ).select(rejected_schema().names())
    return Split(rows.filter(~refused), rejected.cast(rejected_schema()))


def _all_readable(spec: StreamSpec, rows: pl.DataFrame) -> bool:
    """Whether no row fails a test: cheap, for most rows are so."""
    floor = spec.earliest_event_us
    return (
        rows[FAULT].null_count() == rows.height
        and not any(rows[name].null_count() for name in (KEY, EVENT_US, ARRIVAL_US))
        and not (rows[KEY] == "").any()
        and (floor is None or not (rows[EVENT_US] < floor).any())
    )


def _tests(spec: StreamSpec, rows: pl.DataFrame) -> tuple[tuple[str, pl.Expr], ...]:
    """Reason and test, in the order of the contract; no test gives null."""
    floor = spec.earliest_event_us
    event_text = field(spec.columns.event_time.column)
    is_early = pl.lit(False) if floor is None else (pl.col(EVENT_US) < floor).fill_null(value=False)
    return (
        (MALFORMED_RECORD, pl.col(FAULT).is_not_null()),
        (MISSING_KEY, _is_missing(rows, KEY)),
        (MISSING_EVENT_TIME, _is_missing(rows, event_text)),
        (UNREADABLE_EVENT_TIME, pl.col(EVENT_US).is_null()),
        (IMPLAUSIBLE_EVENT_TIME, is_early),
        (MISSING_ARRIVAL_TIME, pl.col(ARRIVAL_US).is_null()),
    )


def _is_missing(rows: pl.DataFrame, name: str) -> pl.Expr:
    column = pl.col(name)
    if rows.schema[name] != pl.String:
        return column.is_null()
    return (column.is_null() | (column == "")).fill_null(value=True)


def _malformed(_spec: StreamSpec, rows: pl.DataFrame) -> pl.Series:
    return rows[FAULT]


def _missing_key(spec: StreamSpec, rows: pl.DataFrame) -> pl.Series:
    names = [
        pl.when(_is_missing(rows, field(name))).then(pl.lit(name)) for name in spec.columns.key
    ]
    missing = pl.concat_str(names, separator=", ", ignore_nulls=True)
    return rows.select(pl.format("{} is null or empty", missing)).to_series()


def _missing_event_time(spec: StreamSpec, rows: pl.DataFrame) -> pl.Series:
    return pl.repeat(f"{spec.columns.event_time.column} is null or empty", rows.height, eager=True)


def _unreadable_event_time(spec: StreamSpec, rows: pl.DataFrame) -> pl.Series:
    return _unreadable(spec.columns.event_time, rows)


def _missing_arrival_time(spec: StreamSpec, rows: pl.DataFrame) -> pl.Series:
    column = spec.columns.arrival_time
    missing = rows.select(_is_missing(rows, field(column.column))).to_series()
    told = _unreadable(column, rows)
    absent = pl.lit(f"{column.column} is null or empty")
    return pl.select(pl.when(missing).then(absent).otherwise(told)).to_series()


def _unreadable(column: TimeColumn, rows: pl.DataFrame) -> pl.Series:
    values = rows[field(column.column)]
    shown = to_text(values).str.head(_SHOWN)
    plain = pl.format(f"{{}} {_unit_words(column.unit)}", _named(column, shown))
    if column.zone is not None or column.unit in UNIT_EXPONENTS:
        return pl.select(plain).to_series()
    has_no_zone = read_times(values, column.unit, "UTC").is_not_null()
    zoneless = pl.format("{} has no offset, and no zone is declared", _named(column, shown))
    return pl.select(pl.when(has_no_zone).then(zoneless).otherwise(plain)).to_series()


def _named(column: TimeColumn, shown: pl.Series) -> pl.Expr:
    return pl.format("{} '{}'", pl.lit(column.column), pl.lit(shown).fill_null(""))


def _unit_words(unit: str) -> str:
    if unit in UNIT_EXPONENTS:
        return f"is no number of {unit} within range"
    braceless = unit.replace("{", "{{").replace("}", "}}")
    return "is no ISO 8601 time" if unit == ISO8601 else f"does not fit the format {braceless}"


def _implausible_event_time(spec: StreamSpec, rows: pl.DataFrame) -> pl.Series:
    column, floor = spec.columns.event_time, spec.earliest_event_us or 0
    shown = to_text(rows[field(column.column)]).str.head(_SHOWN)
    told = pl.format(
        "{} is {}, before earliest_event_time {}",
        _named(column, shown),
        pl.lit(_instants(rows[EVENT_US])),
        pl.lit(_instants(pl.Series([floor]))),
    )
    if column.unit not in UNIT_EXPONENTS:
        return pl.select(told).to_series()
    unit, instant = _likely_unit(column, rows, floor)
    guess = pl.format(f"{{}}: declared in {column.unit}, likely {{}} ({{}})", told, unit, instant)
    return pl.select(pl.when(pl.lit(unit).is_null()).then(told).otherwise(guess)).to_series()


def _likely_unit(column: TimeColumn, rows: pl.DataFrame, floor: int) -> tuple[pl.Series, pl.Series]:
    """The unit in which the number would be nearest to its arrival, and what time that is."""
    reference = rows[ARRIVAL_US].fill_null(floor).cast(pl.Float64)
    best = pl.DataFrame(schema=_BEST).clear(rows.height)
    for unit in UNIT_EXPONENTS:
        at = read_times(rows[field(column.column)], unit)
        away = (at.cast(pl.Float64) - reference).abs()
        is_better = (at >= floor) & (best["away"].is_null() | (away < best["away"]))
        found = {"unit": pl.lit(unit), "at": pl.lit(at), "away": pl.lit(away)}
        best = best.with_columns(
            pl.when(pl.lit(is_better)).then(value).otherwise(pl.col(name)).alias(name)
            for name, value in found.items()
        )
    return best["unit"], _instants(best["at"])


_BEST = {"unit": pl.String, "at": pl.Int64, "away": pl.Float64}


def _instants(times: pl.Series) -> pl.Series:
    """Times as text; beyond the years 1 to 9999 as a number of microseconds."""
    shown = times.clip(_FIRST_SHOWN_US, _LAST_SHOWN_US)
    text = shown.cast(pl.Datetime("us", "UTC")).dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ")
    number = pl.format("{} us", pl.lit(times))
    return pl.select(
        pl.when(pl.lit(shown == times)).then(pl.lit(text)).otherwise(number)
    ).to_series()


_DETAILS: dict[str, Callable[[StreamSpec, pl.DataFrame], pl.Series]] = {
    MALFORMED_RECORD: _malformed,
    MISSING_KEY: _missing_key,
    MISSING_EVENT_TIME: _missing_event_time,
    UNREADABLE_EVENT_TIME: _unreadable_event_time,
    IMPLAUSIBLE_EVENT_TIME: _implausible_event_time,
    MISSING_ARRIVAL_TIME: _missing_arrival_time,
}
