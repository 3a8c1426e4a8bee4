"""The sweep says of every candidate what reordering under that grace does, row for row."""

from dataclasses import dataclass

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from property.arrival_logs import logs, specs

from transforms import schemas
from transforms.grace.sweep import (
    AMENDED,
    CLOSED,
    DEAD,
    DELAY_MEDIAN_US,
    FIRST_BY_LATE,
    GRACE_US,
    PEAK_ROWS,
    Sweep,
    sweep_of,
)
from transforms.grace.windows import shortest_window
from transforms.lateness.arrival_log import joined, read_log
from transforms.reorder import Outcome, advance, empty_state
from transforms.schemas import (
    BUFFER_OVERFLOW,
    DEAD_LETTER_REASONS,
    KEY,
    REASON,
    REFUSED_AT_US,
    WATERMARK_US,
    WINDOW_END_US,
    WINDOW_START_US,
)
from transforms.spec import StreamSpec
from transforms.windows import assign, counted_rows

SETTINGS = settings(max_examples=40, deadline=None)
AMPLE = 10_000


@dataclass(frozen=True)
class Question:
    """A log, one profile of its stream, and a grace to try for it."""

    spec: StreamSpec
    staged: pl.DataFrame
    profile: str
    grace_us: int

    @property
    def sweep(self) -> Sweep:
        return sweep_of(self.spec, read_log(self.spec, self.staged), self.profile)

    def with_numbers(self, capacity: int, *, others: int | None = None) -> StreamSpec:
        """The spec with the grace in force and a capacity; other profiles may have another."""
        own = {"capacity": capacity, "grace_us": self.grace_us}
        rest = {"capacity": capacity if others is None else others}
        named = {
            name: profile.model_copy(update=own if name == self.profile else rest)
            for name, profile in self.spec.profiles.named.items()
        }
        default = named.pop("default")
        profiles = self.spec.profiles.model_copy(update={"default": default, **named})
        return self.spec.model_copy(update={"profiles": profiles})

    def run(self, capacity: int = AMPLE, *, others: int | None = None) -> Outcome:
        """Reorder the rows of the keys that use the profile."""
        spec, staged = self.with_numbers(capacity, others=others), self.own_rows()
        nothing = schemas.row_schema(spec).to_frame()
        return advance(spec, staged, empty_state(spec), nothing, None)

    def own_rows(self) -> pl.DataFrame:
        return self.staged.filter(pl.col(KEY).is_in(self.sweep.reach.log.keys.implode()))


@st.composite
def questions(draw: st.DrawFn) -> Question:
    spec = draw(specs())
    profile = draw(st.sampled_from(sorted(spec.profiles.named)))
    return Question(spec, draw(logs(spec)), profile, draw(st.integers(0, 14)))


def reasons(outcome: Outcome) -> dict[str, int]:
    found = dict(outcome.dead_letters.group_by(REASON).len().iter_rows())
    return {reason: found.get(reason, 0) for reason in DEAD_LETTER_REASONS}


@SETTINGS
@given(questions())
def test_dead_letters_of_a_candidate_are_those_of_reordering_with_room_for_all(q: Question) -> None:
    point = q.sweep.point(q.grace_us)
    assert {reason: point[reason] for reason in DEAD_LETTER_REASONS} == reasons(q.run())
    assert point[DEAD] == q.run().dead_letters.height


@SETTINGS
@given(questions(), st.integers(1, 4), st.integers(1, 4))
def test_a_capacity_refuses_the_rows_that_reordering_refuses(
    q: Question, capacity: int, others: int
) -> None:
    spec = q.with_numbers(capacity, others=others)
    sweep = sweep_of(spec, read_log(spec, q.own_rows()), q.profile)
    refused = reasons(q.run(capacity, others=others))[BUFFER_OVERFLOW]
    assert sweep.point(q.grace_us, capacity)[BUFFER_OVERFLOW] == refused


@SETTINGS
@given(questions())
def test_the_peak_is_the_least_capacity_that_refuses_nobody(q: Question) -> None:
    peak = q.sweep.point(q.grace_us)[PEAK_ROWS]
    assert reasons(q.run(max(peak, 1)))[BUFFER_OVERFLOW] == 0
    if peak > 1:
        assert reasons(q.run(peak - 1))[BUFFER_OVERFLOW] > 0


@SETTINGS
@given(questions())
def test_windows_are_amended_that_reordering_leaves_a_row_out_of(q: Question) -> None:
    point, outcome = q.sweep.point(q.grace_us), q.run()
    rows = counted_rows(outcome.ordered, outcome.dead_letters)
    held = outcome.state.held.with_columns(
        pl.lit(False).alias(schemas.IS_DEAD_LETTER), pl.lit(None, pl.Int64).alias(REFUSED_AT_US)
    )
    every = pl.concat([rows, held.select(rows.columns)])
    missed = (pl.col(WINDOW_END_US) <= pl.col(REFUSED_AT_US)).fill_null(False)
    windows = pl.concat(
        assign(window, every)
        .group_by(KEY, WINDOW_START_US)
        .agg(missed.any().alias("any"), missed.all().alias("all"))
        for window in q.spec.windows
    )
    assert point[FIRST_BY_LATE] == windows["all"].sum()
    assert point[AMENDED] == (windows["any"] & ~windows["all"]).sum()


@settings(max_examples=12, deadline=None)
@given(questions())
def test_a_window_is_published_as_soon_as_reordering_could_close_it(q: Question) -> None:
    staged = q.own_rows()
    if staged.is_empty():
        return
    spec, nothing = q.with_numbers(AMPLE), schemas.row_schema(q.spec).to_frame()
    rows = q.sweep.reach
    until = max(staged["arrival_us"].max() + 4, 0)  # type: ignore[operator]
    outcome = q.run()
    counted = counted_rows(outcome.ordered, outcome.dead_letters).select(KEY, "event_us")
    every = pl.concat([counted, outcome.state.held.select(KEY, "event_us")])
    window = shortest_window(spec)
    windows = assign(window, every).select(KEY, WINDOW_END_US).unique()
    delays: dict[tuple[str, int], int] = {}
    for now in range(int(staged["arrival_us"].min()), until + 1):  # type: ignore[arg-type]
        came = staged.filter(pl.col("arrival_us") <= now)
        state = advance(spec, came, empty_state(spec), nothing, now).state
        reached = windows.join(state.watermarks, on=KEY).filter(
            pl.col(WINDOW_END_US) <= pl.col(WATERMARK_US)
        )
        for key, end in reached.select(KEY, WINDOW_END_US).iter_rows():
            delays.setdefault((key, end), now - end)
    assert rows.log.size == staged.height
    sweep = sweep_of(spec, read_log(spec, staged), q.profile, until)
    point = sweep.point(q.grace_us)
    assert sorted(sweep.publication.delays(q.grace_us).tolist()) == sorted(delays.values())
    assert point[CLOSED] == len(delays)
    assert (point[DELAY_MEDIAN_US] is None) == (not delays)


@SETTINGS
@given(questions())
def test_shards_joined_are_swept_like_the_stream(q: Question) -> None:
    log = read_log(q.spec, q.staged)
    parts = [read_log(q.spec, part) for _, part in q.staged.group_by(KEY, maintain_order=True)]
    if not parts:
        return
    together = sweep_of(q.spec, joined(parts), q.profile)
    assert together.curve([0, q.grace_us]).equals(
        sweep_of(q.spec, log, q.profile).curve([0, q.grace_us])
    )
    assert together.curve([q.grace_us])[GRACE_US].to_list() == [q.grace_us]
