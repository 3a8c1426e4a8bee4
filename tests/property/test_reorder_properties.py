"""Reordering on random logs: it equals the sequential reference, however the log is cut."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from property.arrival_logs import logs, specs, with_other_numbers
from property.sequential_reference import Reference, is_nan

from transforms import schemas
from transforms.reorder import Outcome, advance, earlier_spans, empty_state
from transforms.spec import StreamSpec

Rows = list[dict[str, Any]]

THOROUGH = settings(max_examples=100, deadline=None)
BRIEF = settings(max_examples=25, deadline=None)


@dataclass(frozen=True)
class Part:
    """An arrival partition: its rows, the spec of its day, and its end if it is complete."""

    spec: StreamSpec
    staged: pl.DataFrame
    frontier_us: int | None


@st.composite
def parts(draw: st.DrawFn, *, changing: bool = False) -> list[Part]:
    """Draw a log in parts. Where numbers are ``changing``, each part has its own profiles."""
    spec = draw(specs())
    staged = draw(logs(spec))
    arrivals = staged[schemas.ARRIVAL_US].to_list()
    cuttable = [i for i in range(1, len(arrivals)) if arrivals[i - 1] < arrivals[i]]
    cuts = sorted(draw(st.sets(st.sampled_from(cuttable)))) if cuttable else []
    last = arrivals[-1] if arrivals else 0
    until = draw(st.none() | st.integers(last + 1, last + 30))
    ends = [*(None if until is None else arrivals[cut] for cut in cuts), until]
    pieces = [staged[low:high] for low, high in pairwise([0, *cuts, staged.height])]
    days = [draw(with_other_numbers(spec)) if changing else spec for _ in pieces]
    return [Part(*part) for part in zip(days, pieces, ends, strict=True)]


def advance_all(log: list[Part]) -> Iterator[Outcome]:
    """Advance part by part, as over a lake: with the earlier rows that count and may matter."""
    state = empty_state(log[0].spec)
    columns = schemas.row_columns(log[0].spec)
    lake = schemas.row_schema(log[0].spec).to_frame()
    for part in log:
        spans = earlier_spans(part.spec, part.staged)
        within = [pl.col(schemas.EVENT_US).is_between(*span) for span in spans or ()]
        near = pl.lit(True) if spans is None else pl.any_horizontal(pl.lit(False), *within)
        outcome = advance(part.spec, part.staged, state, lake.filter(near), part.frontier_us)
        yield outcome
        state = outcome.state
        counted = pl.col(schemas.REASON).is_in(schemas.COUNTED_DEAD_LETTER_REASONS)
        new = (outcome.ordered, outcome.dead_letters.filter(counted))
        lake = pl.concat([lake, *(frame.select(columns) for frame in new)])


def told_by(outcomes: list[Outcome]) -> dict[str, Rows]:
    """Return all rows and the state at the end; of ordered rows of a key, in release order."""
    last = outcomes[-1].state
    return {
        schemas.ORDERED: by_key(listed(*(outcome.ordered for outcome in outcomes))),
        schemas.DEAD_LETTER: by_seq(listed(*(outcome.dead_letters for outcome in outcomes))),
        schemas.DUPLICATE: by_seq(listed(*(outcome.duplicates for outcome in outcomes))),
        schemas.HELD: by_seq(listed(last.held)),
        schemas.WATERMARKS: by_key(listed(last.watermarks)),
    }


def told_by_reference(log: list[Part]) -> dict[str, Rows]:
    """Return the same, as the sequential reference tells it."""
    spec = log[0].spec
    reference = Reference(spec)
    for part in log:
        reference.spec = part.spec
        for row in part.staged.iter_rows(named=True):
            reference.judge(dict(row))
        reference.finish(part.frontier_us)
    held = [row for key in reference.keys.values() for row in key.held]
    dead_letters = framed(reference.dead_letters, schemas.dead_letter_schema(spec))
    return {
        schemas.ORDERED: by_key(listed(framed(reference.ordered, schemas.ordered_schema(spec)))),
        schemas.DEAD_LETTER: by_seq(listed(dead_letters)),
        schemas.DUPLICATE: by_seq(
            listed(framed(reference.duplicates, schemas.duplicate_schema(spec)))
        ),
        schemas.HELD: by_seq(listed(framed(held, schemas.ordered_schema(spec)))),
        schemas.WATERMARKS: by_key(reference.watermarks()),
    }


def framed(rows: Rows, schema: pl.Schema) -> pl.DataFrame:
    return pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)


def listed(*frames: pl.DataFrame) -> Rows:
    """Return the rows of frames; NaN, which equals nothing, as a text."""
    return [
        {name: "NaN" if is_nan(value) else value for name, value in row.items()}
        for frame in frames
        for row in frame.iter_rows(named=True)
    ]


def by_key(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: str(row[schemas.KEY]))


def by_seq(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: int(row[schemas.SEQ]))


@THOROUGH
@given(parts())
def test_a_log_cut_anywhere_is_judged_as_row_by_row(log: list[Part]) -> None:
    assert told_by(list(advance_all(log))) == told_by_reference(log)


@THOROUGH
@given(parts(changing=True))
def test_numbers_of_profiles_act_from_the_next_partition_on(log: list[Part]) -> None:
    assert told_by(list(advance_all(log))) == told_by_reference(log)


@BRIEF
@given(parts())
def test_every_row_ends_in_exactly_one_place(log: list[Part]) -> None:
    told = told_by(list(advance_all(log)))
    places = (told[state] for state in schemas.STATES if state in told)
    seqs = [row[schemas.SEQ] for rows in places for row in rows]
    assert sorted(seqs) == sorted(seq for part in log for seq in part.staged[schemas.SEQ])


@BRIEF
@given(parts(changing=True))
def test_a_watermark_never_falls(log: list[Part]) -> None:
    before: dict[str, int] = {}
    for outcome in advance_all(log):
        columns = outcome.state.watermarks.select(schemas.KEY, schemas.WATERMARK_US)
        now = dict(columns.iter_rows())
        assert all(now[key] >= watermark for key, watermark in before.items())
        before = now


@BRIEF
@given(parts(changing=True))
def test_the_ordered_events_of_a_key_never_step_back_in_time(log: list[Part]) -> None:
    released = told_by(list(advance_all(log)))[schemas.ORDERED]
    for one, next_one in pairwise(released):
        assert one["key"] != next_one["key"] or one["event_us"] <= next_one["event_us"]


@BRIEF
@given(parts(), st.sampled_from("abc"))
def test_the_rows_of_one_key_change_nothing_for_another(log: list[Part], letter: str) -> None:
    def of_key(rows: Rows) -> Rows:
        return [row for row in rows if row[schemas.KEY].endswith(letter)]

    own = pl.col(schemas.KEY).str.ends_with(letter)
    alone = [Part(part.spec, part.staged.filter(own), part.frontier_us) for part in log]
    told = told_by(list(advance_all(log)))
    assert told_by(list(advance_all(alone))) == {name: of_key(told[name]) for name in told}
