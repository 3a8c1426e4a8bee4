"""Times: exact, floored, in the declared unit and zone, and nothing is guessed."""

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from math import floor
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from transforms.reading.time_formats import compile_format
from transforms.reading.times import read_times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INT64_MAX = 2**63 - 1
US = {"s": Fraction(10**6), "ms": Fraction(10**3), "us": Fraction(1), "ns": Fraction(1, 1000)}


def read(text: str | None, unit: str, zone: str | None = None) -> int | None:
    times = read_times(pl.Series("t", [text], dtype=pl.String), unit, zone)
    assert times.dtype == pl.Int64
    return times[0]


def us(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-05-04T00:00:05Z", "2026-05-04T00:00:05+00:00"),
        ("2026-05-04 00:00:05Z", "2026-05-04T00:00:05+00:00"),
        ("2026-05-04T00:00Z", "2026-05-04T00:00:00+00:00"),
        ("2026-05-04T00:00:05.2Z", "2026-05-04T00:00:05.200000+00:00"),
        ("2026-05-04T00:00:05.123456789Z", "2026-05-04T00:00:05.123456+00:00"),
        (
            "2026-05-04T00:00:05.99999999999999999999999999999999999Z",
            "2026-05-04T00:00:05.999999+00:00",
        ),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999+00:00"),
        ("2026-05-04T02:00:05+02", "2026-05-04T00:00:05+00:00"),
        ("2026-05-04T02:00:05+0200", "2026-05-04T00:00:05+00:00"),
        ("2026-05-04T02:00:05+02:00", "2026-05-04T00:00:05+00:00"),
        ("2026-05-03T18:30:05-05:30", "2026-05-04T00:00:05+00:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_iso_8601_is_read_to_the_microsecond(text: str, instant: str) -> None:
    assert read(text, "iso8601") == us(instant)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "x", "NaN", "1777852805", "2026-05-04T00:00:60Z", "2026-05-04T24:00:00Z"),
        *("2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z"),
        *("2026-05-00T00:00:00Z", "0000-01-01T00:00:00Z", "2026-05-04T00:60:00Z"),
        *("2026-5-4T00:00:00Z", "26-05-04T00:00:00Z", "20260504T000000Z", "2026-05-04T0:00:00Z"),
        *("2026-05-04T00:00:00.Z", "2026-05-04T00:00:00,5Z", "2026-05-04t00:00:00z"),
        *("2026-05-04T00:00:00+2", "2026-05-04T00:00:00+24:00", "2026-05-04T00:00:00+02:60"),
        *("2026-05-04Z", "2026-05-04+02:00", " 2026-05-04T00:00:00Z", "2026-05-04T00:00:00Z "),
        *("2026-05-04T00:00:00 Z", "2026-05-04  00:00:00Z", "2026-05-04T00Z", "2026-W19-1"),
        "2026-05-0\N{ARABIC-INDIC DIGIT FOUR}T00:00:00Z",
        "2026-05-04T00:00:00.123456+00:00:00",
    ],
)
def test_what_is_no_iso_8601_time_is_unreadable(text: str) -> None:
    assert read(text, "iso8601", "UTC") is None


@pytest.mark.parametrize("text", ["2026-05-04", "2026-05-04T00:00", "2026-05-04 00:00:05.5"])
def test_a_text_without_offset_needs_a_declared_zone(text: str) -> None:
    assert read(text, "iso8601") is None
    assert read(text, "iso8601", "UTC") == us(text + ("T00:00" if len(text) == 10 else "") + "Z")


def test_a_text_with_an_offset_means_what_it_says_whatever_zone_is_declared() -> None:
    assert read("2026-05-04T02:00:05+01:00", "iso8601", "Europe/Berlin") == us(
        "2026-05-04T01:00:05+00:00"
    )


@pytest.mark.parametrize(
    ("local", "instant"),
    [
        ("2026-03-29T01:59:59.999999", "2026-03-29T00:59:59.999999+00:00"),
        ("2026-03-29T02:00:00", "2026-03-29T01:00:00+00:00"),  # never happens: offset before
        ("2026-03-29T02:30:00", "2026-03-29T01:30:00+00:00"),
        ("2026-03-29T03:00:00", "2026-03-29T01:00:00+00:00"),
        ("2026-10-25T01:59:59", "2026-10-24T23:59:59+00:00"),
        ("2026-10-25T02:00:00", "2026-10-25T00:00:00+00:00"),  # happens twice: the first
        ("2026-10-25T02:59:59", "2026-10-25T00:59:59+00:00"),
        ("2026-10-25T03:00:00", "2026-10-25T02:00:00+00:00"),
        ("2026-07-01", "2026-06-30T22:00:00+00:00"),
        ("1893-03-31T23:59:59", "1893-03-31T23:06:31+00:00"),  # local mean time, odd seconds
    ],
)
def test_local_times_around_a_clock_change(local: str, instant: str) -> None:
    assert read(local, "iso8601", "Europe/Berlin") == us(instant)


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia"]
)
def test_local_times_are_those_of_the_time_zone_database(zone: str) -> None:
    starts = [datetime(year, 1, 1) for year in (1883, 1911, 1972, 2026)]  # noqa: DTZ001
    steps = [start + timedelta(minutes=17 * n) for start in starts for n in range(4000)]
    texts = pl.Series([step.isoformat() for step in steps])
    expected = [
        (step.replace(tzinfo=ZoneInfo(zone)) - EPOCH) // timedelta(microseconds=1) for step in steps
    ]
    assert read_times(texts, "iso8601", zone).to_list() == expected


offsets = st.integers(-23 * 60, 23 * 60).map(lambda at: timezone(timedelta(minutes=at)))


@given(
    st.datetimes(timezones=offsets),
    st.sampled_from(["T", " "]),
)
def test_whatever_python_writes_as_iso_8601_is_read_back(moment: datetime, blank: str) -> None:
    expected = (moment - EPOCH) // timedelta(microseconds=1)
    assert read(moment.isoformat(blank), "iso8601") == expected


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("1777852805.25", "s", 1_777_852_805_250_000),
        ("1714780800.1234569999", "s", 1_714_780_800_123_456),
        ("-0.0000001", "s", -1),
        ("-1.5", "s", -1_500_000),
        ("-1.5000001", "s", -1_500_001),
        ("1e3", "s", 1_000_000_000),
        ("1.777852805E9", "s", 1_777_852_805_000_000),
        ("-1e-999999999999999999999", "s", -1),
        ("1e-400", "s", 0),
        ("-0.0", "s", 0),
        ("1777852803000", "ms", 1_777_852_803_000_000),
        ("0.0019", "ms", 1),
        ("-0.0019", "ms", -2),
        ("1777852803000000", "us", 1_777_852_803_000_000),
        ("-0.1", "us", -1),
        ("1999", "ns", 1),
        ("-1", "ns", -1),
        ("-1000", "ns", -1),
        ("-1000.5", "ns", -2),
        ("1777852803000000999.9", "ns", 1_777_852_803_000_000),
        ("9223372036854775807999", "ns", INT64_MAX),
        ("9223372036854.775807", "s", INT64_MAX),
        ("-9223372036854.775808", "s", -INT64_MAX - 1),
        (" 5 ", "s", 5_000_000),
        ("+5.", "s", 5_000_000),
        ("0005", "s", 5_000_000),
    ],
)
def test_numbers_are_read_as_they_are_written_and_floored(
    text: str, unit: str, expected: int
) -> None:
    assert read(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        *(("", "s"), ("x", "s"), ("nan", "s"), ("inf", "ms"), ("true", "s"), ("1_0", "s")),
        *((".", "s"), ("1e", "s"), ("0x1", "s"), ("1,5", "s"), ("2026-05-04", "s")),
        *(("9223372036854.775808", "s"), ("-9223372036854.7758081", "s"), ("1e999", "s")),
        *(("9223372036854775808", "us"), ("9223372036854775808000", "ns"), ("1" * 5000, "ns")),
        ("1e999999999999999999999", "ms"),
    ],
)
def test_what_is_no_number_within_range_is_unreadable(text: str, unit: str) -> None:
    assert read(text, unit) is None


def test_null_stays_null() -> None:
    for unit in ("iso8601", "s", "ns", "%Y-%m-%d"):
        assert read(None, unit, None if unit in US else "UTC") is None


@given(
    st.integers(-(10**20), 10**20),
    st.integers(0, 12),
    st.integers(-15, 15),
    st.sampled_from(sorted(US)),
)
@settings(max_examples=300)
def test_every_decimal_is_floored_exactly(
    digits: int, places: int, exponent: int, unit: str
) -> None:
    whole = str(abs(digits)).rjust(places + 1, "0")
    cut = len(whole) - places
    sign = "-" if digits < 0 else ""
    text = f"{sign}{whole[:cut]}{'.' if places else ''}{whole[cut:]}e{exponent}"
    plain = text.partition("e")[0]
    for written, power in ((text, exponent), (plain, 0)):
        exact = floor(Fraction(digits, 10**places) * Fraction(10) ** power * US[unit])
        expected = exact if -(2**63) <= exact < 2**63 else None
        assert read(written, unit) == expected


def test_a_column_of_many_ways_of_writing_is_read_cell_by_cell() -> None:
    texts = ["1.5", None, "2", "x", "1e1", "-3.25", "", "4.1234567"]
    times = read_times(pl.Series("t", texts), "s")
    assert times.to_list() == [read(text, "s") for text in texts]
    iso = ["2026-05-04T00:00:05Z", None, "2026-05-04", "x", "2026-05-04T00:00:05+0100", ""]
    assert read_times(pl.Series("t", iso), "iso8601", "UTC").to_list() == [
        read(text, "iso8601", "UTC") for text in iso
    ]


@pytest.mark.parametrize(
    ("text", "form", "instant"),
    [
        ("04.05.2026 02:03:04", "%d.%m.%Y %H:%M:%S", "2026-05-04T02:03:04+00:00"),
        ("4.5.2026   2:3", "%d.%m.%Y %H:%M", "2026-05-04T02:03:00+00:00"),
        ("2026-05-04T02:03:04.1234567", "%Y-%m-%dT%H:%M:%S.%f", "2026-05-04T02:03:04.123456+00:00"),
        ("20260504", "%Y%m%d", "2026-05-04T00:00:00+00:00"),
        ("5/4/26 02:03:04 PM", "%m/%d/%y %I:%M:%S %p", "2026-05-04T14:03:04+00:00"),
        ("12:00 AM 5/4/99", "%I:%M %p %m/%d/%y", "1999-05-04T00:00:00+00:00"),
        ("Mon, 4 May 2026 02:03:04 +0100", "%a, %d %b %Y %H:%M:%S %z", "2026-05-04T01:03:04+00:00"),
        ("MAY 4 2026", "%B %d %Y", "2026-05-04T00:00:00+00:00"),
        ("2024-366", "%Y-%j", "2024-12-31T00:00:00+00:00"),
        ("2026-05-04 100%", "%F 100%%", "2026-05-04T00:00:00+00:00"),
        ("[04/May/2026:02:03:04 -0530]", "[%d/%b/%Y:%T %z]", "2026-05-04T07:33:04+00:00"),
        ("@1777852805", "@%s", "2026-05-04T00:00:05+00:00"),
    ],
)
def test_declared_formats_are_read(text: str, form: str, instant: str) -> None:
    assert read(text, form, None if "%z" in form or "%s" in form else "UTC") == us(instant)


@given(
    st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)),  # noqa: DTZ001
    st.sampled_from(
        [
            "%Y-%m-%d %H:%M:%S.%f",
            "%d.%m.%Y, %I:%M:%S.%f %p",
            "%A, %d %B %Y %T.%f",
            "%a %b %e %H%M%S%f %Y",
            "%j/%Y %Hh%Mm%Ss%f",
            "%F (%T.%f) {x} \\d+",
        ]
    ),
)
def test_whatever_strftime_writes_is_read_back(moment: datetime, form: str) -> None:
    expected = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert read(moment.strftime(form), form, "UTC") == expected


@pytest.mark.parametrize(
    ("text", "form"),
    [
        *(("31.02.2026", "%d.%m.%Y"), ("04.05.2026 x", "%d.%m.%Y"), ("x", "%Y"), ("", "%d.%m.%Y")),
        *(
            ("2026-366", "%Y-%j"),
            ("9999-366", "%Y-%j"),
            ("2026-05-04 10:00:60", "%Y-%m-%d %H:%M:%S"),
        ),
        *(
            ("2026-05-04 24:00", "%F %R"),
            ("2026x05x04", "%Y.%m.%d"),
            ("2026-05-04 13 PM", "%F %I %p"),
        ),
    ],
)
def test_what_does_not_fit_its_format_is_unreadable(text: str, form: str) -> None:
    form = form if form != "%Y" else "%Y%m%d"
    assert read(text, form, "UTC") is None


def test_a_format_is_read_in_its_zone_or_by_its_offset() -> None:
    assert read("25.10.2026 02:30", "%d.%m.%Y %H:%M", "Europe/Berlin") == us(
        "2026-10-25T00:30:00+00:00"
    )
    assert read("25.10.2026 02:30", "%d.%m.%Y %H:%M") is None
    assert read("25.10.2026 02:30 +0100", "%d.%m.%Y %H:%M %z", "Europe/Berlin") == us(
        "2026-10-25T01:30:00+00:00"
    )


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("%H:%M", "which day"),
        ("%Y-%m", "which day"),
        ("%Y-%m-%d %Q", "not known"),
        ("%Y-%m-%d %", "not known"),
        ("%Y-%m-%d %Y", "twice"),
        ("%Y-%m-%d %I", "without %p"),
    ],
)
def test_a_format_that_names_no_point_in_time_is_refused(form: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compile_format(form)


def test_timestamps_of_parquet_carry_their_own_unit() -> None:
    moment = datetime(2026, 5, 4, 0, 0, 5, 250_000, tzinfo=UTC)
    for unit in ("ms", "us", "ns"):
        typed = pl.Series("t", [moment, None], dtype=pl.Datetime(unit, "UTC"))
        assert read_times(typed, "iso8601").to_list() == [us(moment.isoformat()), None]
        berlin = typed.dt.convert_time_zone("Europe/Berlin")
        assert read_times(berlin, "iso8601").to_list() == [us(moment.isoformat()), None]


def test_nanoseconds_before_the_epoch_are_floored_too() -> None:
    typed = pl.Series("t", [-1, -1000, -1001]).cast(pl.Datetime("ns", "UTC"))
    assert read_times(typed, "iso8601").to_list() == [-1, -1, -2]


def test_timestamps_without_a_zone_are_local_times() -> None:
    typed = pl.Series("t", [datetime(2026, 7, 1), None])  # noqa: DTZ001
    assert read_times(typed, "iso8601", "Europe/Berlin").to_list() == [
        us("2026-06-30T22:00:00+00:00"),
        None,
    ]
    assert read_times(typed.cast(pl.Date), "iso8601", "UTC")[0] == us("2026-07-01T00:00:00+00:00")
    assert read_times(typed, "iso8601").to_list() == [None, None]


def test_milliseconds_beyond_int64_microseconds_are_unreadable() -> None:
    typed = pl.Series("t", [2**62, 5]).cast(pl.Datetime("ms", "UTC"))
    assert read_times(typed, "iso8601").to_list() == [None, 5000]


def test_numbers_of_parquet_are_read_in_the_declared_unit() -> None:
    assert read_times(pl.Series("t", [1777852805.25, None]), "s").to_list() == [
        1_777_852_805_250_000,
        None,
    ]
    assert read_times(pl.Series("t", [1777852805]), "s").to_list() == [1_777_852_805_000_000]


@pytest.mark.parametrize("unit", US)
@given(
    st.lists(
        st.one_of(
            st.integers(-(2**63), INT64_MAX),
            st.integers(-3000, 3000),
            st.sampled_from((-(2**63), INT64_MAX, INT64_MAX // 1000, -(INT64_MAX // 10**6) - 1)),
        )
    )
)
def test_a_column_of_integers_says_what_their_texts_say(unit: str, values: list[int]) -> None:
    integers = pl.Series("t", values, dtype=pl.Int64)
    assert_series_equal(read_times(integers, unit), read_times(integers.cast(pl.String), unit))


def test_an_unsigned_integer_beyond_int64_is_out_of_range() -> None:
    values = pl.Series("t", [2**64 - 1, 7], dtype=pl.UInt64)
    assert read_times(values, "us").to_list() == [None, 7]
    assert read_times(values, "ns")[0] == (2**64 - 1) // 1000
