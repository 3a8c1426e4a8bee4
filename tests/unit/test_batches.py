"""How revisions are cut into batches that may be written side by side."""

import polars as pl

from transforms.publication import batches
from transforms.schemas import REVISION, WINDOW_IDENTITY

NAMES = ["stream", "window", "key", "window_start_us"]


def revisions(*rows: tuple[str, int, int]) -> pl.DataFrame:
    """Rows as (key, start, revision)."""
    return pl.DataFrame(
        [
            {"stream": "s", "window": "w", "key": key, "window_start_us": start, "revision": number}
            for key, start, number in rows
        ],
        schema={**dict.fromkeys(NAMES[:3], pl.String()), NAMES[3]: pl.Int64, "revision": pl.Int64},
    )


MANY = revisions(*((f"k{k}", start, 0) for k in range(10) for start in range(10)))


def test_every_revision_is_in_one_batch() -> None:
    cut = pl.concat([batch.revisions for batch in batches(MANY, lanes=4, rows=7)])
    assert cut.sort(cut.columns).equals(MANY.sort(MANY.columns))


def test_a_batch_has_no_more_rows_than_allowed_and_no_extra_columns() -> None:
    for batch in batches(MANY, lanes=4, rows=7):
        assert 1 <= batch.revisions.height <= 7
        assert batch.revisions.columns == MANY.columns


def test_lanes_take_turns() -> None:
    lanes = [batch.lane for batch in batches(MANY, lanes=4, rows=7)]
    assert sorted(lanes[:4]) == [0, 1, 2, 3]


def test_a_window_is_in_one_lane_and_its_revisions_come_in_order_whatever_order_they_had() -> None:
    shuffled = revisions(*((f"k{k}", 0, number) for number in (2, 0, 1, 3) for k in range(9)))
    placed = pl.concat(
        batch.revisions.with_columns(lane=pl.lit(batch.lane))
        for batch in batches(shuffled, lanes=3, rows=2)
    )
    per_window = placed.group_by(WINDOW_IDENTITY).agg(pl.col("lane").n_unique(), pl.col(REVISION))
    assert per_window["lane"].to_list() == [1] * 9
    assert per_window[REVISION].to_list() == [[0, 1, 2, 3]] * 9


def test_the_lane_of_a_window_does_not_depend_on_the_others() -> None:
    def lanes(rows: pl.DataFrame) -> dict[tuple[object, ...], int]:
        cut = batches(rows, lanes=4, rows=4)
        return {row[:4]: batch.lane for batch in cut for row in batch.revisions.iter_rows()}

    few = MANY.filter(pl.col("key") < "k4")
    assert lanes(few).items() <= lanes(MANY).items()


def test_a_few_rows_are_one_batch_and_none_are_none() -> None:
    assert [batch.lane for batch in batches(MANY.head(5), lanes=4, rows=20)] == [0]
    assert list(batches(MANY.clear(), lanes=4, rows=20)) == []
