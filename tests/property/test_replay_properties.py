"""What must be true of every replay, on nasty logs: P1, P2, P3, P5, P7 and P8 of the contract."""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from property.replay_logs import Log, batch_oracle, logs, write

from orchestration.replay import Result, calculate, replay
from orchestration.replay_files import OUR_FILES, arranged
from transforms.publication import compare_first, current, readable
from transforms.reconcile import reconcile
from transforms.spec import load_spec
from transforms.windows import counted_rows

UNPROVEN = ("published_at_us", "run_id")
Tables = dict[str, pl.DataFrame]


@contextmanager
def files_of(log: Log, splits: list[int]) -> Iterator[tuple[Path, list[str]]]:
    with tempfile.TemporaryDirectory() as folder:
        yield write(log, Path(folder), splits)


def calculated(log: Log, *, cut: int = 1, splits: list[int] | None = None) -> Result:
    with files_of(log, splits or []) as (spec, paths):
        loaded = load_spec(spec.read_text(), file="spec.yaml")
        return calculate(loaded, paths, cut=cut, **log.arguments())


def comparable(result: Result) -> Tables:
    """The tables as they are written, but for who published when, and where a line was read."""
    hidden = [*UNPROVEN, "source", "line"]
    return {
        name: arranged(name, frame).drop(hidden, strict=False)
        for name, frame in result.tables.items()
    }


def near(found: object, wanted: object) -> bool:
    """Exact, but for fractions, where the oracle sums in another way."""
    if isinstance(found, float) and isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12)
    return found == wanted


@settings(max_examples=50, deadline=None)
@given(log=logs())
def test_p1_p7_p8_windows_are_right_their_revisions_too_and_again_is_nothing(log: Log) -> None:
    tables = dict(calculated(log, cut=3).tables)
    current_windows_are_a_plain_grouping_of_all_valid_rows(log, tables)
    one_revision_is_current_and_there_are_no_gaps(tables)
    to_reconcile_or_publish_again_is_to_do_nothing(log, tables)


def current_windows_are_a_plain_grouping_of_all_valid_rows(log: Log, tables: Tables) -> None:
    watermarks = dict(tables["watermarks"].select("key", "watermark_us").iter_rows())
    wanted = batch_oracle(log, watermarks)
    found = {
        (row["window"], row["key"], row["window_start_us"]): row
        for row in tables["windows"].iter_rows(named=True)
    }
    assert found.keys() == wanted.keys()
    for window, columns in wanted.items():
        differing = {
            name: (found[window][name], value)
            for name, value in columns.items()
            if not near(found[window][name], value)
        }
        assert not differing, window


def one_revision_is_current_and_there_are_no_gaps(tables: Tables) -> None:
    window = ("window", "key", "window_start_us")
    history = tables["window_history"].sort(*window, "revision")
    numbers = history.group_by(*window, maintain_order=True).agg("revision")
    assert all(found == list(range(len(found))) for found in numbers["revision"].to_list())
    newest = numbers.with_columns(pl.col("revision").list.last())
    there = tables["windows"].sort(window).select(*window, "revision")
    assert there.equals(newest)


def to_reconcile_or_publish_again_is_to_do_nothing(log: Log, tables: Tables) -> None:
    spec = load_spec(yaml.safe_dump(log.spec, sort_keys=False), file="spec.yaml")
    history = tables["window_history"].drop(UNPROVEN)
    counted = counted_rows(tables["ordered_events"], tables["dead_letters"])
    again = reconcile(spec, counted, history, tables["watermarks"], flushed=log.flush)
    assert again.is_empty()
    first = history.filter(pl.col("revision") == 0)
    assert compare_first(first, history).new.is_empty()
    assert readable(current(history)).equals(tables["windows"])


@settings(max_examples=25, deadline=None)
@given(log=logs(), data=st.data())
def test_p2_parts_and_files_change_nothing(log: Log, data: st.DataObject) -> None:
    cut = data.draw(st.integers(2, 8), label="cut")
    places = st.integers(0, len(log.lines))
    splits = data.draw(st.lists(places, max_size=3), label="splits")
    whole, parted = comparable(calculated(log)), comparable(calculated(log, cut=cut, splits=splits))
    for name, frame in whole.items():
        assert frame.equals(parted[name], null_equal=True), name


@settings(max_examples=10, deadline=None)
@given(log=logs())
def test_p3_p5_the_books_balance_and_a_replay_again_gives_the_same_bytes(log: Log) -> None:
    with files_of(log, []) as (spec, paths):
        outs = [spec.parent / "one", spec.parent / "two"]
        results = [replay(spec, paths, out, **log.arguments()) for out in outs]
        assert [result["balanced"] for result in results] == [True, True]
        assert sum(results[0]["counts"].values()) == 2 * len(log.lines)
        for name in OUR_FILES - {"window_history.parquet"}:
            assert (outs[0] / name).read_bytes() == (outs[1] / name).read_bytes(), name
