"""Reordering on random logs: it equals the sequential reference, however the log is cut."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from property.arrival_logs import logs, specs
from property.sequential_reference import Reference

from transforms import schemas
from transforms.reorder import Outcome, State, advance, earlier_bounds, empty_state
from transforms.spec import StreamSpec

NASTY = settings(max_examples=150, deadline=None)


@dataclass(frozen=True)
class Case:
    """A log, where it is cut (each part with its frontier), and the last frontier."""

    spec: StreamSpec
    staged: pl.DataFrame
    parts: list[tuple[pl.DataFrame, int | None]]
    until: int | None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    spec = draw(specs())
    staged = draw(logs(spec))
    arrivals = staged[schemas.ARRIVAL_US].to_list()
    cuttable = [i for i in range(1, len(arrivals)) if arrivals[i - 1] < arrivals[i]]
    cuts = sorted(draw(st.sets(st.sampled_from(cuttable)))) if cuttable else []
    last = arrivals[-1] if arrivals else 0
    until = draw(st.none() | st.integers(last + 1, last + 30))
    ends = [None if until is None else arrivals[cut] for cut in cuts]
    bounds = pairwise([0, *cuts, staged.height])
    parts = [staged[low:high] for low, high in bounds]
    return Case(spec, staged, list(zip(parts, [*ends, until], strict=True)), until)


def advance_all(case: Case) -> Iterator[Outcome]:
    """Advance part by part, as the lake would: earlier rows that count, pruned by event time."""
    state = empty_state(case.spec)
    row_columns = schemas.row_columns(case.spec)
    earlier = schemas.row_schema(case.spec).to_frame()
    for part, frontier in case.parts:
        bounds = earlier_bounds(case.spec, part)
        near = earlier
        if bounds is not None:
            near = earlier.filter(pl.col(schemas.EVENT_US).is_between(*bounds))
        outcome = advance(case.spec, part, state, near, frontier)
        yield outcome
        state = outcome.state
        counted = pl.col(schemas.REASON).is_in(schemas.COUNTED_DEAD_LETTER_REASONS)
        buried = outcome.dead_letters.filter(counted)
        new = (frame.select(row_columns) for frame in (outcome.ordered, buried))
        earlier = pl.concat([earlier, *new])


def all_of(outcomes: list[Outcome]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all outcomes: by key and, inside a key, in the order they were released."""
    return {
        "ordered": by_key([row for outcome in outcomes for row in listed(outcome.ordered)]),
        "dead_letters": by_seq([row for o in outcomes for row in listed(o.dead_letters)]),
        "duplicates": by_seq([row for o in outcomes for row in listed(o.duplicates)]),
        "held": by_seq(listed(outcomes[-1].state.held)),
        "watermarks": by_key(listed(outcomes[-1].state.watermarks)),
    }


def reference_of(case: Case) -> dict[str, list[dict[str, Any]]]:
    reference = Reference(case.spec)
    for row in case.staged.iter_rows(named=True):
        reference.judge(dict(row))
    reference.finish(case.until)
    watermarks = [
        {
            "key": name,
            "watermark_us": key.watermark,
            "last_arrival_us": key.last_arrival,
            "profile": key.profile,
            "max_event_us": key.max_event,
        }
        for name, key in reference.keys.items()
        if key.last_arrival is not None
    ]
    spec = case.spec
    return {
        "ordered": by_key(shaped(reference.ordered, schemas.ordered_schema(spec))),
        "dead_letters": by_seq(shaped(reference.dead_letters, schemas.dead_letter_schema(spec))),
        "duplicates": by_seq(shaped(reference.duplicates, schemas.duplicate_schema(spec))),
        "held": by_seq(
            shaped(
                [row for key in reference.keys.values() for row in key.held],
                schemas.ordered_schema(spec),
            )
        ),
        "watermarks": by_key(watermarks),
    }


def listed(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows, with NaN as a text, for it equals nothing."""
    return [
        {name: "NaN" if value != value else value for name, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]


def shaped(rows: list[dict[str, Any]], schema: pl.Schema) -> list[dict[str, Any]]:
    return listed(pl.DataFrame([{n: row[n] for n in schema} for row in rows], schema=schema))


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["key"])


def by_seq(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["seq"])


@NASTY
@given(cases())
def test_a_log_cut_anywhere_gives_what_the_sequential_reference_gives(case: Case) -> None:
    assert all_of(list(advance_all(case))) == reference_of(case)
