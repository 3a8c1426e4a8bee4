"""Durations and lengths: what text is one, what it means, and that it comes back as it went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.durations import (
    DAY_US,
    HOUR_US,
    LONGEST_US,
    MINUTE_US,
    SECOND_US,
    Length,
    format_duration,
    parse_duration,
    parse_length,
)


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("0s", 0),
        ("250us", 250),
        ("500ms", SECOND_US // 2),
        ("90s", 90 * SECOND_US),
        ("10m", 10 * MINUTE_US),
        ("6h", 6 * HOUR_US),
        ("1d", DAY_US),
        ("400d", 400 * DAY_US),
    ],
)
def test_a_duration_is_a_whole_number_and_a_unit(text: str, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize(
    "text",
    [
        *("", "10", "m", "1.5h", "-1s", "+1s", "1 s", " 1s", "1s ", "1S", "1h30m", "1w", "1mo"),
        *("off", "\u0661s", "1e3s", "1s\n", "99999999999999999999s"),
    ],
)
def test_nothing_else_is_a_duration(text: str) -> None:
    with pytest.raises(ValueError, match="a duration such as 500ms, 90s, 10m, 6h or 1d"):
        parse_duration(text)


def test_a_duration_stays_far_inside_int64() -> None:
    assert parse_duration("3652500d") == LONGEST_US
    with pytest.raises(ValueError, match="at most 3652500d"):
        parse_duration("3652501d")


@given(st.integers(min_value=0, max_value=LONGEST_US))
def test_a_formatted_duration_reads_as_what_it_was(us: int) -> None:
    assert parse_duration(format_duration(us)) == us


@pytest.mark.parametrize(
    ("us", "text"),
    [(0, "0s"), (90 * SECOND_US, "90s"), (3_600 * SECOND_US, "1h"), (-DAY_US, "-1d"), (7, "7us")],
)
def test_a_duration_is_written_in_its_greatest_whole_unit(us: int, text: str) -> None:
    assert format_duration(us) == text


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("700ms", Length(700_000, None, 0)),
        ("90m", Length(90 * MINUTE_US, None, 0)),
        ("24h", Length(DAY_US, None, 0)),
        ("1d", Length(DAY_US, "day", 1)),
        ("2w", Length(None, "week", 2)),
        ("3mo", Length(None, "month", 3)),
        ("1q", Length(None, "quarter", 1)),
        ("1y", Length(None, "year", 1)),
    ],
)
def test_a_length_is_fixed_or_of_the_calendar_and_a_day_is_both(text: str, length: Length) -> None:
    assert parse_length(text) == length


def test_equal_lengths_are_equal_however_they_are_written() -> None:
    assert parse_length("60m") == parse_length("1h")


@pytest.mark.parametrize("text", ["0s", "0d", "0mo", "10001y", "1x", "", "one hour"])
def test_a_length_is_above_zero_and_within_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"length|at most"):
        parse_length(text)
