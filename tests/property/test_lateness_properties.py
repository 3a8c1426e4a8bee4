"""The lateness profile of any log adds up, and says of rows what the rows say."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from property.arrival_logs import logs, specs

from transforms.lateness.arrival_log import Log, read_log
from transforms.lateness.profile import PROFILE_SCHEMA, lateness_profile
from transforms.spec import StreamSpec

SETTINGS = settings(max_examples=40, deadline=None)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[StreamSpec, pl.DataFrame]:
    spec = draw(specs())
    return spec, draw(logs(spec))


def profiled(spec: StreamSpec, staged: pl.DataFrame) -> tuple[Log, pl.DataFrame]:
    log = read_log(spec, staged)
    return log, lateness_profile(log, tuple(spec.profiles.named))


@SETTINGS
@given(drawn())
def test_every_staged_row_is_counted_once_on_each_level(
    question: tuple[StreamSpec, pl.DataFrame],
) -> None:
    spec, staged = question
    _, table = profiled(spec, staged)
    assert table.schema == PROFILE_SCHEMA
    for _, level in table.group_by("level"):
        counted = level.select(pl.sum_horizontal("rows", "duplicates", "future_rows").sum())
        assert counted.item() == staged.height


@SETTINGS
@given(drawn())
def test_histograms_and_quantiles_are_those_of_the_rows(
    question: tuple[StreamSpec, pl.DataFrame],
) -> None:
    log, table = profiled(*question)
    moving = log.rows.moving
    delays = log.rows.arrival[moving] - log.rows.event[moving]
    for row in table.filter(level="stream").iter_rows(named=True):
        if row["rows"]:
            assert sum(row["delay_histogram"]) == sum(row["behind_histogram"]) == row["rows"]
            assert (row["delay_min_us"], row["delay_max_us"]) == (delays.min(), delays.max())
            assert row["behind_rows"] == row["rows"] - row["behind_histogram"][0]


@SETTINGS
@given(drawn())
def test_the_profile_of_a_key_does_not_depend_on_other_keys(
    question: tuple[StreamSpec, pl.DataFrame],
) -> None:
    spec, staged = question
    own = [name for name in PROFILE_SCHEMA if name not in ("clock_offset_us", "clock_zone_minutes")]
    _, table = profiled(spec, staged)
    for (key,), rows in staged.group_by("key"):
        _, alone = profiled(spec, rows)
        of_key = (frame.filter(level="key", name=key).select(own) for frame in (table, alone))
        assert next(of_key).equals(next(of_key))
