"""The stages over the lake: cuts change nothing, re-runs change nothing, a kill changes nothing."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from river import ROW_TABLES, River, arrivals, by_rank, content

from assets.freshness import first_unfinished, with_data
from assets.stores.lake import Lake
from transforms import schemas
from transforms.errors import LakeError, SourceError

LOG = arrivals()
FAR_FUTURE_US = 2_000_000_000_000_000


def assert_same(left: dict[str, pl.DataFrame], right: dict[str, pl.DataFrame]) -> None:
    for name, frame in left.items():
        assert_frame_equal(frame, right[name])


def unfinished(river: River) -> str | None:
    files = river.resources["landing"].of(river.spec).survey()
    keys = with_data(river.spec, river.axis, files, FAR_FUTURE_US)
    return first_unfinished(river.spec, river.lake, river.axis, files, keys)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> River:
    """The log in one file, by days, in one run."""
    river = River(tmp_path_factory.mktemp("plain"))
    river.land(LOG)
    river.run()
    return river


def test_the_log_has_all_that_can_happen(plain: River) -> None:
    dead = set(plain.table(schemas.DEAD_LETTERS)[schemas.REASON])
    assert dead == set(schemas.DEAD_LETTER_REASONS)
    assert plain.table(schemas.DUPLICATES).height
    assert set(plain.table(schemas.REJECTED_ROWS)[schemas.REASON]) == {
        schemas.MISSING_KEY,
        schemas.MISSING_ARRIVAL_TIME,
    }
    assert plain.current().filter(pl.col(schemas.REVISION) > 0).height


@pytest.mark.parametrize(
    ("grain", "events_grain", "shards", "files"),
    [("hour", "day", 2, 3), ("day", "hour", 3, 7)],
)
def test_how_arrivals_are_cut_changes_nothing(  # noqa: PLR0917 (an example a column)
    plain: River, tmp_path: Path, grain: str, events_grain: str, shards: int, files: int
) -> None:
    river = River(tmp_path, grain, events_grain, shards)
    river.land(LOG, files)
    river.run()
    names = [name for name in ROW_TABLES if name not in {schemas.HELD_EVENTS, schemas.WATERMARKS}]
    for one, other in zip(
        by_rank(*(plain.table(name) for name in names)),
        by_rank(*(river.table(name) for name in names)),
        strict=True,
    ):
        # Where a row stood is another place in other files.
        place = [name for name in (schemas.SOURCE, schemas.LINE) if name in one.columns]
        assert_frame_equal(one.drop(place), other.drop(place), check_exact=True)
    assert_frame_equal(content(plain.current()), content(river.current()), check_exact=True)


def test_partitions_one_by_one_are_partitions_in_one_run(plain: River, tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land(LOG)
    for key in river.keys:
        river.take_in([key])
    river.amend()
    assert_same(river.tables(), plain.tables())


def test_the_target_holds_what_the_lake_says(plain: River) -> None:
    order = list(schemas.WINDOW_IDENTITY)
    assert_frame_equal(plain.published().sort(order), plain.current().sort(order))


def test_a_second_run_commits_nothing(plain: River) -> None:
    versions, tables = plain.versions(), plain.tables()
    assert unfinished(plain) is None
    assert plain.amend() == []
    plain.run()
    assert plain.versions() == versions
    assert_same(plain.tables(), tables)


def test_any_partition_can_be_run_again_alone(plain: River) -> None:
    versions = plain.versions()
    plain.take_in(plain.keys[1:2])
    assert plain.versions() == versions


def corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a file as its sender corrects them: one changed, one dropped, one added."""
    new = [dict(row) for row in rows]
    new[10]["stage"] = -5.5
    new[50]["stage"] = -7.25
    del new[20]
    new.insert(25, {**new[25], "sampled": new[25]["sampled"] + 7, "stage": 3.25})
    return new


def test_a_changed_source_gives_what_a_run_from_scratch_gives(tmp_path: Path) -> None:
    size = -(-len(LOG) // 3)
    second = corrected(LOG[size : 2 * size])
    river = River(tmp_path / "changed")
    river.land(LOG, 3)
    river.run()
    before = river.current()
    river.land_file(1, second)
    first = unfinished(river)
    assert first is not None
    river.take_in(river.axis.between(first, river.keys[-1]))
    assert river.amend()
    assert unfinished(river) is None
    assert river.amend() == []

    fresh = River(tmp_path / "fresh")
    fresh.land(LOG, 3)
    fresh.land_file(1, second)
    fresh.run()
    for name in ROW_TABLES:
        assert_frame_equal(river.table(name), fresh.table(name))
    assert_frame_equal(content(river.current()), content(fresh.current()), check_exact=True)
    assert_frame_equal(content(river.published()), content(fresh.current()), check_exact=True)
    names = [*schemas.WINDOW_IDENTITY, schemas.REVISION]
    newer = river.current().join(before, on=names, how="anti")
    assert schemas.RESTAGED in set(newer[schemas.REASON])


def test_a_file_that_is_gone_keeps_its_rows(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land(LOG, 3)
    river.run()
    versions, tables = river.versions(), river.tables()
    (tmp_path / "landing" / "001.ndjson").unlink()
    assert unfinished(river) is None
    river.run()
    assert_same(river.tables(), tables)
    del versions[schemas.SOURCE_FILES]
    assert {name: river.versions()[name] for name in versions} == versions


def test_a_file_that_is_gone_before_it_was_staged_is_named(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land(LOG, 3)
    river.resources["landing"].of(river.spec).survey()
    (tmp_path / "landing" / "001.ndjson").unlink()
    with pytest.raises(SourceError, match=r"001.ndjson: the file is gone, and partition 2024"):
        river.take_in(river.keys)


def test_a_partition_without_the_one_before_says_which_to_run(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land(LOG)
    with pytest.raises(LakeError, match=r"partition 2024-01-01 .* lowwater run river --from 2024"):
        river.take_in(river.keys[1:])


def test_state_of_another_spec_says_what_changed(plain: River, tmp_path: Path) -> None:
    other = River(tmp_path, grain="day", shards=2)
    river = River(plain.folder)
    object.__setattr__(river, "spec", other.spec)
    with pytest.raises(LakeError, match=r"by another spec: shards was 1 and is 2\. Recompute"):
        unfinished(river)


class Killed(BaseException):
    """Stands for a kill at a commit: nothing after it runs, nothing is cleaned up."""


def test_a_kill_at_any_commit_changes_nothing_in_the_end(
    plain: River, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Lake.commit
    left = [0]

    def deadly(self: Lake, *arguments: object) -> None:
        commit(self, *arguments)  # type: ignore[arg-type]
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(Lake, "commit", deadly)
    river = River(tmp_path)
    river.land(LOG)
    # One lake dies after its first, then its second, ... commit, until a run comes to its end.
    for attempt in range(1, 200):
        left[0] = attempt
        try:
            River(tmp_path).run()
            break
        except Killed:
            continue
    assert attempt > 3
    assert_same(River(tmp_path).tables(), plain.tables())
    assert_frame_equal(River(tmp_path).published(), plain.published())
