"""Times as a source has them, to Int64 microseconds UTC: exact, floored, null where unreadable.

The one door: `read_times` takes a column of text (or of a Parquet time type) and the unit and zone
that a stream declares. What each way of writing looks like is in `iso_times`, `number_times` and
`time_formats`; zones and calendars are in `civil`.
"""

import numpy as np
import polars as pl

from transforms.reading.civil import DAY_US, local_to_utc, nullable
from transforms.reading.iso_times import read_iso_times
from transforms.reading.number_times import UNIT_EXPONENTS, read_number_times
from transforms.reading.texts import to_text
from transforms.reading.time_formats import read_formatted_times

ISO8601 = "iso8601"


def read_times(values: pl.Series, unit: str, zone: str | None = None) -> pl.Series:
    """Int64 microseconds UTC of a column; null where it is null, empty or cannot be read.

    `unit` is iso8601, s, ms, us, ns or a strptime format (ValueError if it is none). `zone` is that
    of times without an offset; without it they cannot be read. A column of dates or timestamps
    (Parquet) carries its own unit.
    """
    if values.dtype.is_temporal():
        return _typed_times(values, zone).alias(values.name)
    if unit in UNIT_EXPONENTS:
        is_integer = values.dtype.is_integer()
        times = read_number_times(values if is_integer else to_text(values), unit)
    elif unit == ISO8601:
        times = read_iso_times(to_text(values), zone)
    else:
        times = read_formatted_times(to_text(values), unit, zone)
    return times.alias(values.name)


def _typed_times(values: pl.Series, zone: str | None) -> pl.Series:
    """A Date or Datetime column; one without a zone of its own is local time in `zone`."""
    times = _physical_us(values)
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None:
        return times
    if zone is None:
        return pl.repeat(None, values.len(), dtype=pl.Int64, eager=True)
    utc = local_to_utc(times.fill_null(0).to_numpy(), zone)
    return nullable(utc, times.is_not_null().to_numpy())


def _physical_us(values: pl.Series) -> pl.Series:
    numbers = values.to_physical().cast(pl.Int64)
    if not isinstance(values.dtype, pl.Datetime):
        return numbers * DAY_US
    if values.dtype.time_unit == "ns":
        return numbers // 1000
    if values.dtype.time_unit == "us":
        return numbers
    limit = int(np.iinfo(np.int64).max) // 1000
    fits = numbers.is_between(-limit, limit)
    return pl.select(pl.when(fits).then(numbers)).to_series() * 1000
