"""Whatever arrives, every promise is kept: no check is red on a log that was worked rightly."""

import tempfile
from functools import cache
from pathlib import Path

import polars as pl
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from property.arrival_logs import logs, specs

from assets.history import History, Targets
from assets.order_audit import audit_orders
from assets.partitions import Axis
from assets.publication import publish_windows
from assets.reconcile import amend
from assets.reorder import reorder
from assets.stored import stored_of
from assets.stores.lake import Lake, Slot
from assets.stores.marks import Mark
from assets.stores.tables import EVENT_TABLES, frame_schema, unit_of
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.windows import close_windows
from expectations.invariants import CATALOGUE, Invariant
from expectations.run import gather, summarize
from expectations.stored import Stored
from transforms.books import entry
from transforms.schemas import REJECTED_ROWS, STAGED_EVENTS, STAGED_SOURCES, TARGET_PARITY
from transforms.spec import StreamSpec

DAY_US = 86_400_000_000
# Arrivals of a drawn log start a little before zero.
LATER_US = DAY_US + 1000
DAYS = ("1970-01-01", "1970-01-02")
# Proofs of the target have their own tests on random faults, and take their time.
PROMISES = tuple(i for i in CATALOGUE if i.severity == "error" and i.asset != TARGET_PARITY)


@cache
def known(axis: Axis) -> Axis:
    """The axis that is equal and has been used: to list the days since 1970 takes its time."""
    return axis


def staged(spec: StreamSpec, lake: Lake, parts: dict[str, pl.DataFrame]) -> None:
    """Put rows into the lake as staging does."""
    with unit_of(lake, spec, STAGED_SOURCES) as unit:
        for day, rows in parts.items():
            note = (day, 0, day, rows.height, 0, str(entry(spec, rows)))
            schema = frame_schema(spec, STAGED_SOURCES)
            notes = pl.DataFrame([note], schema=schema, orient="row")
            unit.replace(STAGED_EVENTS, Slot(day), rows)
            unit.replace(REJECTED_ROWS, Slot(day), frame_schema(spec, REJECTED_ROWS).to_frame())
            unit.replace(STAGED_SOURCES, Slot(day), notes, str(Mark.of(spec, day)))


def in_two_days(rows: pl.DataFrame, cut: int) -> dict[str, pl.DataFrame]:
    """Let the rows after the cut come, and happen, a day later."""
    later = [
        (pl.col(name) + LATER_US).alias(name)
        for name in ("event_us", "arrival_us", "original_event_us")
        if name in rows.columns
    ]
    return {DAYS[0]: rows[:cut], DAYS[1]: rows[cut:].with_columns(later)}


def red(stored: Stored, invariants: tuple[Invariant, ...]) -> list[tuple[object, ...]]:
    """Every subject with violations, and every invariant whose evidence is missing."""
    evidence = gather(stored, invariants)
    missing = (
        summarize(stored, invariants, evidence)
        .select(pl.col("^evidence of .*$").sum())
        .row(0, named=True)
    )
    found = [(name, count) for name, count in missing.items() if count]
    for name, frame in evidence.items():
        wrong = frame.filter(pl.col("violations") != 0)
        found += [(name, *row) for row in wrong.iter_rows()]
    return found


@given(data=st.data(), spec=specs())
@settings(
    max_examples=12, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
def test_no_check_is_red_on_a_log_that_was_worked_rightly(
    data: st.DataObject, spec: StreamSpec
) -> None:
    rows = data.draw(logs(spec))
    parts = in_two_days(rows, data.draw(st.integers(0, rows.height)))
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(f"{folder}/lake", event_tables=EVENT_TABLES)
        target = DuckDBTarget(Path(folder) / "target.duckdb")
        arrivals, events = known(Axis.of_arrivals(spec)), known(Axis.of_events(spec))
        history, targets = History(lake, spec, events), Targets({"default": target})
        staged(spec, lake, parts)
        list(reorder(spec, lake, arrivals, DAYS))
        list(close_windows(spec, lake, arrivals, DAYS))
        list(publish_windows(history, targets, DAYS, "run"))
        list(amend(history, targets, arrivals, DAYS, "run"))
        list(audit_orders(spec, lake, arrivals, DAYS))
        with target:
            held = target.current(spec.name)
        for axis, stored in (
            ("arrival", stored_of(lake, spec, arrivals, DAYS)),
            ("event", stored_of(lake, spec, events, DAYS, held)),
        ):
            assert red(stored, tuple(i for i in PROMISES if i.axis == axis)) == []
