"""Files that are corrected after they were taken in: the outcome is that of a run from scratch."""

import json
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from end_to_end.killed_stream import (
    DAY_S,
    NAME,
    SPEC,
    START_S,
    TABLES,
    Content,
    arrivals,
    run_stages,
    spec_of,
)

from assets import reconcile, staging
from assets.partitions import Axis
from assets.stores.intake import Intake
from orchestration.run import Runner
from orchestration.settings import Settings
from transforms.errors import LakeError

SMALL = SPEC.replace("by: link", "key_map: {}").replace("shards: 2", "shards: 1")
Row = dict[str, Any]


def row(at: int, came: int, station: str = "s1") -> Row:
    seconds = {"at": START_S + at, "came": START_S + came}
    return {"station": station, **seconds, "level": 1.0, "hits": 1, "firmware": "f"}


ON_TIME = [row(at, at + 10) for at in range(0, 2 * DAY_S, 7_200)]
# All windows of a late row are closed when it comes, so no first publication knows of it.
LATE = row(1_800, DAY_S + 14_405)
LATER = row(1_860, DAY_S + 14_406)
# A day in which this station said nothing in time: reconciliation publishes its windows first.
SILENT = [row(-DAY_S, 20, "s2"), row(DAY_S + 7_200, DAY_S + 7_210, "s2")]
NEVER_SEEN = row(DAY_S // 4, DAY_S + 7_220, "s2")


def take_in(home: Path, files: dict[str, list[Row]], spec: str = SMALL) -> Path:
    (home / "streams").mkdir(parents=True, exist_ok=True)
    (home / "landing").mkdir(exist_ok=True)
    (home / "streams" / f"{NAME}.yaml").write_text(spec)
    for name, rows in files.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (home / "landing" / name).write_text(text)
    run_stages(home)
    return home


def said_now(home: Path) -> pl.DataFrame:
    current = Content(home).target["current"].filter(pl.col("event_count") > 0)
    return current.drop("revision", "reason", "published_at_us", "run_id")


@pytest.mark.parametrize(
    "taken_back", [[NEVER_SEEN], [LATE, NEVER_SEEN]], ids=["one of them", "both"]
)
def test_what_late_rows_changed_changes_back_when_they_are_taken_back(
    tmp_path: Path, taken_back: list[Row]
) -> None:
    late = [LATE, NEVER_SEEN]
    home = take_in(tmp_path / "a", {"a": [*ON_TIME, *SILENT], "b": late})
    before = said_now(home)
    kept = [row for row in late if row not in taken_back]
    take_in(home, {"b": kept})
    scratch = take_in(tmp_path / "b", {"a": [*ON_TIME, *SILENT], "b": kept})
    assert not said_now(home).equals(before)
    assert said_now(home).equals(said_now(scratch))
    take_in(home, {"b": late})
    assert said_now(home).equals(before)


@pytest.mark.parametrize(
    "before", [[], [LATE], [LATER]], ids=["nothing late", "one row late", "another row late"]
)
def test_a_source_put_back_after_an_amendment_was_cut_short_is_reconciled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[Row]
) -> None:
    def cut_short(*_: object) -> None:
        raise KeyboardInterrupt

    home = take_in(tmp_path / "a", {"a": ON_TIME, "b": before})
    said = said_now(home)
    with monkeypatch.context() as cut:
        cut.setattr(reconcile, "publish", cut_short)
        with pytest.raises(KeyboardInterrupt):
            take_in(home, {"b": [LATE, LATER]})
    take_in(home, {"b": before})
    assert said_now(home).equals(said)
    assert said.equals(said_now(take_in(tmp_path / "b", {"a": ON_TIME, "b": before})))


def corrected(random: Random, rows: list[Row]) -> list[Row]:
    """The file as its owner would have it now: rows gone, other values, other times."""
    change = random.choice(
        [
            lambda row: None if random.random() < 0.2 else row,
            lambda row: {**row, "level": random.choice([row["level"], 3.25])},
            lambda row: {**row, "at": row["at"] + random.choice([0, 0, 0, -DAY_S, 9_000])},
            lambda row: {**row, "came": row["came"] + random.choice([0, 0, 0, 7_200, DAY_S])},
        ]
    )
    return [new for row in rows if (new := change(row)) is not None]


@pytest.mark.parametrize("seed", [0])
def test_corrections_give_what_a_run_from_scratch_gives(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret)
    files: dict[str, list[Row]] = {"a": [], "b": [], "c": []}
    for listed in arrivals(seed)[:200]:
        files[random.choice("abc")].append(listed)
    home = take_in(tmp_path / "home", files, SPEC)
    for step in range(2):
        name = random.choice("abc")
        files[name] = corrected(random, files[name])
        take_in(home, {name: files[name]}, SPEC)
        scratch = Content(take_in(tmp_path / f"scratch{step}", files, SPEC))
        assert said_now(home).equals(said_now(tmp_path / f"scratch{step}"))
        for table in ("ordered_events", "dead_letters", "duplicates", "held_events", "watermarks"):
            found = Content(home).tables[table]
            assert all(found[slot].equals(rows) for slot, rows in scratch.tables[table].items())


@pytest.mark.parametrize(
    ("was", "now"), [("grain: day", "grain: hour"), ("start: 2024-01-01", "start: 2024-01-02")]
)
def test_a_lake_cut_in_another_way_is_not_mixed_with(tmp_path: Path, was: str, now: str) -> None:
    take_in(tmp_path, {"a": ON_TIME})
    before = {table: Content(tmp_path).tables[table].keys() for table in TABLES}
    (tmp_path / "streams" / f"{NAME}.yaml").write_text(SMALL.replace(was, now, 1))
    spec, settings = spec_of(tmp_path), Settings.under(tmp_path)
    axis, lake = Axis.of_arrivals(spec), Runner.of(settings, spec).lake
    with pytest.raises(LakeError, match="the lake has partition 2024-01-01, and by the spec"):
        list(staging.stage(spec, lake, Intake(lake, tmp_path, spec), axis, axis.keys[:2]))
    (tmp_path / "streams" / f"{NAME}.yaml").write_text(SMALL)
    assert before == {table: Content(tmp_path).tables[table].keys() for table in TABLES}
