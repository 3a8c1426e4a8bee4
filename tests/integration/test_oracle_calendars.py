"""The batch oracle on weeks, months and local clocks, over changes of the clock: right, and awake.

Seven weeks of readings arrive in one day, some more of them, late, on the next.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from gauges import River, event_days, flow_of

from assets.stored import stored_of
from assets.stores.lake import Slot
from expectations.invariants import CATALOGUE
from expectations.run import gather, summarize
from transforms.spec import load_spec

SPEC = """
name: river
source: {kind: files, path: 'landing/*.ndjson', format: ndjson}
columns:
  key: station
  event_time: {column: at, unit: iso8601}
  arrival_time: {column: came, unit: iso8601}
  values: {level: float}
arrival: {grain: day, start: 2024-05-10, zone: UTC}
events: {grain: day, start: 2024-03-01}
profiles: {default: {grace: 2h, idle_timeout: off, capacity: 1000, future_skew: 5m}}
windows:
  - {name: week, every: 1w, zone: Europe/Berlin}
  - {name: fortnight, length: 2w, every: 1w, zone: America/New_York}
  - {name: month, every: 1mo}
  - {name: month_there, every: 1mo, zone: Asia/Kolkata}
  - {name: day, every: 1d, zone: Europe/Berlin}
  - {name: hour, every: 1h, zone: Australia/Lord_Howe}
aggregates: {level: [mean, max, time_weighted_mean]}
"""
DAYS = ("2024-05-10", "2024-05-11")
FIRST = datetime(2024, 3, 20, tzinfo=UTC)
LOADED = datetime(2024, 5, 10, 6, tzinfo=UTC)
ORACLE = "every_window_equals_a_plain_group_by"
COUNTS = "every_window_counts_its_rows"


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """A reading every 3 hours; each 50th comes a day after all others, behind the watermark."""
    for station in ("weir", "mill"):
        for number in range(8 * 51):
            is_late = number % 50 == 20
            came = LOADED + timedelta(seconds=number, days=int(is_late))
            at = FIRST + timedelta(hours=3 * number, minutes=7)
            reading = {"station": station, "level": number % 11, "at": at.isoformat()}
            yield DAYS[is_late], {**reading, "came": came.isoformat()}


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory) -> River:
    folder = tmp_path_factory.mktemp("calendars")
    (folder / "landing").mkdir()
    for day in DAYS:
        lines = [json.dumps(row) for came, row in rows() if came == day]
        (folder / "landing" / f"{day}.ndjson").write_text("\n".join(lines) + "\n")
    return flow_of(folder, load_spec(SPEC, file="river.yaml"), DAYS)


def red(river: River) -> dict[str, int]:
    """The invariants that fail, with their violations."""
    stored = {
        "arrival": stored_of(river.lake, river.spec, river.arrivals, DAYS),
        "event": stored_of(
            river.lake, river.spec, river.events, event_days(river), river.current()
        ),
    }
    found: dict[str, int] = {}
    for axis, judged in stored.items():
        invariants = [i for i in CATALOGUE if i.axis == axis and i.severity == "error"]
        summary = summarize(judged, invariants, gather(judged, invariants))
        found |= summary.select(pl.exclude("partition").sum()).row(0, named=True)
    return {name: count for name, count in found.items() if count}


def test_windows_of_every_calendar_are_what_the_oracle_says(river: River) -> None:
    assert red(river) == {}
    history = river.lake.scan("river", "window_history").collect()
    amended = history.filter(pl.col("revision") > 0)["window"].unique()
    assert set(amended) == {"week", "fortnight", "month", "month_there", "day"}
    of_change = history.filter(window="day", window_start_us=1_711_839_600_000_000)
    assert set((of_change["window_end_us"] - of_change["window_start_us"]) // 3_600_000_000) == {23}


@pytest.mark.parametrize("window", ["week", "fortnight", "month", "month_there", "day", "hour"])
def test_one_row_more_in_a_window_of_any_calendar_is_seen(river: River, window: str) -> None:
    """In what is said now by the oracle; the first publication was said once and stays."""
    history = river.lake.scan("river", "window_history").collect()
    start_us = history.filter(window=window)["window_start_us"][0]
    day = river.events.key_of(start_us)
    rows = river.lake.scan("river", "window_history", partitions=[day]).collect()
    more = pl.when(pl.col("window") == window).then(pl.col("event_count") + 1)
    wrong = rows.with_columns(more.otherwise(pl.col("event_count")).alias("event_count"))
    river.lake.replace("river", "window_history", {Slot(day): wrong})
    found = red(river)
    river.lake.replace("river", "window_history", {Slot(day): rows})
    assert set(found) == {ORACLE, "the_target_holds_what_was_published"}
