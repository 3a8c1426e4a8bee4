"""Every check can fail, and only the right ones do.

Each fault is planted in what is stored; the checks that should see it turn red, and no others.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pytest
from gauges import DAYS, River, compute, event_days, flow

from assets.stored import stored_of
from assets.stores.lake import Slot
from expectations.evidence.questions import QUESTIONS
from expectations.evidence.tables import EVIDENCE
from expectations.invariants import BY_NAME, CATALOGUE
from expectations.run import gather, summarize
from transforms.spec import Alerts

DAY = DAYS[1]
HOUR = 3_600_000_000
ACCOUNTED = "every_row_is_accounted_for"
COUNTS = "every_window_counts_its_rows"
ORACLE = "every_window_equals_a_plain_group_by"
TARGET = "the_target_holds_what_was_published"
FRESH = "rows_keep_coming"
PROVED = "the_target_equals_the_lake_to_the_bit"
IN_ORDER = "no_same_key_pair_is_inverted"
EARNED = "the_watermark_is_earned"
JUSTIFIED = "every_dead_letter_is_justified"
STAGED_ONCE = "every_row_that_was_read_is_staged_once"

OF_EVENTS = {invariant.name for invariant in CATALOGUE if invariant.axis == "event"}
Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> River:
    return flow(tmp_path_factory.mktemp("river"))


@pytest.fixture
def river(source: River, tmp_path: Path) -> River:
    return source.copied_to(tmp_path / "river")


def red(river: River) -> dict[str, set[str]]:
    """The invariants that do not hold, with the partitions in which they do not."""
    found: dict[str, set[str]] = {}
    axes = {
        "arrival": stored_of(river.lake, river.spec, river.arrivals, DAYS),
        "event": stored_of(
            river.lake, river.spec, river.events, event_days(river), river.current()
        ),
    }
    for axis, stored in axes.items():
        invariants = [invariant for invariant in CATALOGUE if invariant.axis == axis]
        summary = summarize(stored, invariants, gather(stored, invariants))
        for row in summary.iter_rows(named=True):
            for column, count in row.items():
                if column != "partition" and count:
                    found.setdefault(column, set()).add(row["partition"])
    return found


def change(table: str, how: Change, partition: str = DAY) -> Callable[[River], None]:
    """Rewrite the rows of a slot; its mark stays."""

    def plant(river: River) -> None:
        stored = river.read(table, partition)
        if "mark" not in stored.columns:
            river.write(table, partition, how(stored))
            return
        marks, rows = (
            stored.filter(pl.col("mark").is_null() == is_row) for is_row in (False, True)
        )
        river.write(table, partition, pl.concat([marks, how(rows)]))

    return plant


def setting(where: pl.Expr | int, **values: pl.Expr | str | float | None) -> Change:
    """Set columns of the rows that fit, or of the row at a place."""
    fits = where if isinstance(where, pl.Expr) else pl.int_range(pl.len()) == where

    def how(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(
            pl.when(fits)
            .then(value if isinstance(value, pl.Expr) else pl.lit(value))
            .otherwise(pl.col(name))
            .cast(rows.schema[name])
            .alias(name)
            for name, value in values.items()
        )

    return how


def dropping(place: int) -> Change:
    return lambda rows: rows.filter(pl.int_range(pl.len()) != place)


def doubling(place: int, **values: pl.Expr) -> Change:
    return lambda rows: pl.concat(
        [rows[: place + 1], rows[place : place + 1].with_columns(**values), rows[place + 1 :]]
    )


def swapping(place: int) -> Change:
    return lambda rows: pl.concat([rows[:place], rows[place + 1], rows[place], rows[place + 2 :]])


def raised_over_what_is_held(river: River) -> None:
    """Raise the watermark of the bridge just over its first held row."""
    held = river.read("held_events", DAYS[-1]).filter(key="bridge")
    reached = pl.lit(held["event_us"].min()) + 1
    change("watermarks", setting(pl.col("key") == "bridge", watermark_us=reached), DAYS[-1])(river)


def published_a_day_early(river: River) -> None:
    """Move a window of the next day into this day's first publications."""
    later = river.read("window_aggregates", DAYS[2])
    moved = later.filter(pl.col("mark").is_null())[-1:]
    kept = later.filter(~(pl.col("mark").is_null() & (pl.int_range(pl.len()) == pl.len() - 1)))
    river.write("window_aggregates", DAYS[2], kept)
    change("window_aggregates", lambda rows: pl.concat([rows, moved]))(river)


def released_a_day_late(river: River) -> None:
    """Move the first released row of the mill into the next day."""
    rows = river.read("ordered_events", DAY)
    first = (pl.col("key") == "mill") & (pl.col("seq") == rows.filter(key="mill")["seq"][0])
    moved = rows.filter(first)
    river.write("ordered_events", DAY, rows.filter(~first))
    later = river.read("ordered_events", DAYS[2])
    river.write("ordered_events", DAYS[2], pl.concat([later, moved]).sort("key", "event_us", "seq"))


def in_history(how: Change, partition: str = DAY) -> Callable[[River], None]:
    """Rewrite all revisions of an event partition."""

    def plant(river: River) -> None:
        rows = river.lake.scan("river", "window_history", partitions=[partition]).collect()
        river.lake.replace("river", "window_history", {Slot(partition): how(rows)})

    return plant


def without_first_revisions(rows: pl.DataFrame) -> pl.DataFrame:
    """Drop revision 0 of the windows that have another."""
    window = ("window", "key", "window_start_us")
    is_amended = pl.col("revision").max().over(window) > 0
    return rows.filter(~(is_amended & (pl.col("revision") == 0)))


def in_target(statement: str) -> Callable[[River], None]:
    def plant(river: River) -> None:
        with duckdb.connect(river.target.path) as connection:
            connection.execute(
                f"{statement} where \"window\" = 'hour' and key = 'mill'"
                f" and window_start = timestamptz '{DAY} 05:00:00+00'"
            )

    return plant


def more_from_the_future(rows: pl.DataFrame) -> pl.DataFrame:
    clock = rows.filter(pl.col("reason") == "future_timestamp")[:1]
    return pl.concat([rows, *(clock.with_columns(pl.col("seq") + 1000 * n) for n in range(1, 5))])


CLOSED_HOUR = (pl.col("window") == "hour") & (pl.col("window_start_us") % (24 * HOUR) == 5 * HOUR)
FUTURE = pl.col("reason") == "future_timestamp"
BEHIND = pl.col("reason") == "behind_watermark"
MILL = pl.col("key") == "mill"
RELEASED = pl.col("order_of") == "released"

FAULTS: dict[str, tuple[Callable[[River], None], set[str]]] = {
    "a staged row is lost": (change("staged_events", dropping(70)), {STAGED_ONCE, ACCOUNTED}),
    "a staged row is doubled": (change("staged_events", doubling(70)), {STAGED_ONCE, ACCOUNTED}),
    "a staged row took the seq of another": (
        change("staged_events", setting(70, seq=pl.col("seq").shift())),
        {STAGED_ONCE, ACCOUNTED},
    ),
    "a rejected row is lost": (change("rejected_rows", dropping(0)), {STAGED_ONCE}),
    "a rejection has another word": (
        change("rejected_rows", setting(0, reason="bad")),
        {"every_rejected_row_says_why"},
    ),
    "a rejected row has no text": (
        change("rejected_rows", setting(0, raw=None)),
        {"every_rejected_row_says_why"},
    ),
    "a staged row arrived yesterday": (
        change("staged_events", setting(70, arrival_us=pl.col("arrival_us") - 24 * HOUR)),
        {"every_row_is_staged_where_it_arrived", ACCOUNTED},
    ),
    "an ordered row is lost": (change("ordered_events", dropping(70)), {ACCOUNTED, COUNTS, ORACLE}),
    "a value is altered": (
        change("ordered_events", setting(70, level=pl.col("level") + 1)),
        {ACCOUNTED, ORACLE},
    ),
    "two rows are swapped": (
        change("ordered_events", swapping(70)),
        {"released_events_are_in_order_per_key"},
    ),
    "an event counts twice": (
        change("ordered_events", doubling(70, seq=pl.col("seq") + 1000)),
        {"no_event_counts_twice", ACCOUNTED, COUNTS, ORACLE},
    ),
    "a row is released a day late": (
        released_a_day_late,
        {"every_released_event_is_due", ACCOUNTED},
    ),
    "a held row is lost": (change("held_events", dropping(0)), {ACCOUNTED}),
    "a watermark is too high by a microsecond": (
        change("watermarks", setting(MILL, watermark_us=pl.col("watermark_us") + 1), DAYS[-1]),
        {EARNED},
    ),
    "a watermark is over a held row": (raised_over_what_is_held, {EARNED, "no_held_event_is_due"}),
    "a watermark fell": (
        change("watermarks", setting(MILL, watermark_us=pl.col("watermark_us") - 30 * HOUR)),
        {
            EARNED,
            "the_watermark_never_falls",
            "every_released_event_is_due",
            "no_window_is_published_before_its_watermark",
            JUSTIFIED,
        },
    ),
    "a key lost its watermark": (
        change("watermarks", lambda rows: rows.filter(~MILL), DAYS[-1]),
        {
            COUNTS,
            ORACLE,
            "the_watermark_never_falls",
            "every_released_event_is_due",
            "no_window_is_published_before_its_watermark",
            JUSTIFIED,
        },
    ),
    "a dead letter has another word": (
        change("dead_letters", setting(FUTURE, reason="too_early")),
        {"every_dead_letter_has_a_known_reason"},
    ),
    "a dead letter missed more windows than it has": (
        change("dead_letters", setting(FUTURE, windows_missed=99)),
        {"every_dead_letter_has_a_known_reason"},
    ),
    "a dead letter has another lateness": (
        change("dead_letters", setting(BEHIND, lateness_us=pl.col("lateness_us") + 1)),
        {JUSTIFIED},
    ),
    "a dead letter has another reason": (
        change("dead_letters", setting(BEHIND, reason="late_closed_window")),
        {JUSTIFIED},
    ),
    "a dead letter was refused by a watermark to come": (
        change(
            "dead_letters",
            setting(
                BEHIND,
                watermark_us=pl.col("watermark_us") + 48 * HOUR,
                lateness_us=pl.col("lateness_us") + 48 * HOUR,
            ),
        ),
        {JUSTIFIED, COUNTS},
    ),
    "a duplicate repeats nothing": (
        change("duplicates", setting(0, duplicate_of_seq=999_999)),
        {"every_duplicate_repeats_a_counted_row"},
    ),
    "a window is published early": (
        published_a_day_early,
        {"no_window_is_published_before_its_watermark"},
    ),
    "a window counts one more": (
        change(
            "window_aggregates", setting(CLOSED_HOUR & MILL, event_count=pl.col("event_count") + 1)
        ),
        {COUNTS},
    ),
    "the counts of windows are shifted": (
        change(
            "window_aggregates",
            setting(
                (pl.col("window") == "rolling") & MILL,
                event_count=pl.col("event_count").shift(-1, fill_value=9),
            ),
        ),
        {COUNTS, "every_window_agrees_with_itself"},
    ),
    "a mean is above its maximum": (
        change(
            "window_aggregates", setting(CLOSED_HOUR & MILL, level_mean=pl.col("level_max") + 1)
        ),
        {"every_window_agrees_with_itself"},
    ),
    "first revisions are gone": (
        in_history(without_first_revisions),
        {"revisions_have_no_gaps"},
    ),
    "a revision is there twice": (in_history(doubling(0)), {"revisions_have_no_gaps"}),
    "a published mean is altered everywhere": (
        in_history(setting(CLOSED_HOUR, level_mean=pl.col("level_mean") * (1 + 1e-6))),
        {ORACLE, TARGET},
    ),
    "a published percentile is altered everywhere": (
        in_history(setting(CLOSED_HOUR, level_p95=pl.col("level_p95") + 0.01)),
        {ORACLE, TARGET},
    ),
    "a window was never published": (
        in_history(lambda rows: rows.filter(~(CLOSED_HOUR & MILL))),
        {ORACLE, TARGET, PROVED},
    ),
    "a value of the target is altered": (
        in_target("update river.windows_current set level_sum = level_sum + 0.000001"),
        {TARGET},
    ),
    "a row of the target is gone": (in_target("delete from river.windows_current"), {TARGET}),
    "a row of the target is extra": (
        in_target(
            "insert into river.windows_current by name select * replace ('nobody' as key)"
            " from river.windows_current"
        ),
        {TARGET},
    ),
    "the audit saw a key go back in time": (
        change("order_audit", setting(RELEASED, same_key_inverted=1)),
        {IN_ORDER},
    ),
    "an order was not audited": (
        change("order_audit", lambda rows: rows.filter(~RELEASED)),
        {IN_ORDER},
    ),
    "the audit is of other rows": (
        change("order_audit", setting(pl.col("order_of") == "source", keys=2)),
        {IN_ORDER},
    ),
    "a proof found a difference": (
        change("target_parity", setting(0, verdict="CHANGED")),
        {PROVED},
    ),
    "a proof is gone": (change("target_parity", lambda rows: rows.clear()), {PROVED}),
    "a proof is of fewer windows": (
        change("target_parity", setting(0, source_rows=pl.col("source_rows") - 1)),
        {PROVED},
    ),
    "a clock runs ahead": (
        change("dead_letters", more_from_the_future),
        {"clocks_are_right", ACCOUNTED},
    ),
    "a key fell silent": (
        change("watermarks", setting(MILL, last_arrival_us=pl.col("last_arrival_us") - 24 * HOUR)),
        {"every_key_is_heard", EARNED},
    ),
}


def test_a_river_without_faults_is_green(source: River) -> None:
    assert red(source) == {}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_turns_its_checks_red_and_no_other(river: River, name: str) -> None:
    plant, expected = FAULTS[name]
    plant(river)
    found = red(river)
    assert set(found) == expected
    early = {day for check, days in found.items() if check not in OF_EVENTS for day in days}
    assert DAYS[0] not in early, "the day before the fault is well"


# Faults that can be planted one after another, and break every promise about arrivals.
TOGETHER = (
    *("a staged row is lost", "a rejection has another word", "a staged row arrived yesterday"),
    *("two rows are swapped", "a row is released a day late", "an event counts twice"),
    *("a watermark is over a held row", "a watermark fell", "a dead letter has another word"),
    *("a dead letter has another lateness", "a duplicate repeats nothing"),
    *("a window is published early", "a window counts one more", "a mean is above its maximum"),
    *("an order was not audited", "a proof is gone"),
)


def test_computing_the_days_anew_from_their_files_mends_them(river: River) -> None:
    """It is what the checks of arrivals tell people to do."""
    for name in TOGETHER:
        FAULTS[name][0](river)
    told = {i.name for i in CATALOGUE if "run STREAM --from P" in i.remedy}
    assert told <= set(red(river))
    compute(river, DAYS)
    assert red(river) == {}


def test_every_invariant_has_a_question_and_a_fault_that_breaks_it() -> None:
    names = {invariant.name for invariant in CATALOGUE}
    broken = set[str]().union(*(expected for _, expected in FAULTS.values()))
    assert set(QUESTIONS) == names
    assert names - broken == {"dead_letters_stay_below_the_alert", FRESH}, "they have their own"


def test_dead_letters_above_the_alert_level_are_news(source: River) -> None:
    anxious = source.spec.model_copy(update={"alerts": Alerts(dead_letter_fraction=0.01)})
    assert set(red(replace(source, spec=anxious))) == {"dead_letters_stay_below_the_alert"}


def test_a_stream_that_went_quiet_is_news_of_its_newest_partition(source: River) -> None:
    declared = source.spec.alerts.model_copy(update={"stale_after_us": HOUR})
    anxious = source.spec.model_copy(update={"alerts": declared})
    stored = stored_of(source.lake, anxious, source.arrivals, DAYS)
    newest_us = source.read("staged_events", DAYS[-1])["arrival_us"].max()
    assert isinstance(newest_us, int)
    for waited_us, expected in ((HOUR, set()), (HOUR + 1, {DAYS[-1]})):
        judged = replace(stored, now_us=newest_us + waited_us)
        evidence = gather(judged, [BY_NAME[FRESH]])[FRESH]
        assert set(evidence.filter(pl.col("violations") > 0)["partition"]) == expected
        assert set(evidence["partition"]) == set(DAYS)


def test_evidence_that_is_empty_where_rows_are_is_missing(source: River) -> None:
    stored = stored_of(source.lake, source.spec, source.arrivals, DAYS)
    nothing = {invariant.name: EVIDENCE.to_frame() for invariant in CATALOGUE}
    summary = summarize(stored, CATALOGUE, nothing)
    missing = summary.select(pl.col("^evidence of .* is missing$").sum()).row(0)
    assert min(missing) == len(DAYS)


def test_a_lake_with_an_address_is_judged_as_its_folder_is(river: River) -> None:
    """What lies in object storage is read another way than files are."""
    remote = replace(river, lake=replace(river.lake, root=f"file://{river.lake.root}", _open={}))
    assert red(remote) == {}
    plant, expected = FAULTS["an event counts twice"]
    plant(river)
    assert set(red(remote)) == expected
