"""Which rows of which file belong to a partition, wherever they are kept until it is staged."""

from pathlib import Path

import pytest
from polars.testing import assert_frame_equal
from river import DAY_US, START_US, River, arrivals

from assets.staging import feeding
from assets.stores import source_files
from assets.stores.intake import Intake
from transforms.errors import SourceError
from transforms.schemas import REJECTED_ROWS, STAGED_EVENTS, STAGED_SOURCES

LOG = arrivals(rows=60)


def row(arrival_us: int | None, station: str | None = "s1") -> dict[str, object]:
    return {**LOG[0], "station": station, "sampled": START_US, "received": arrival_us}


def staged_by_partition(river: River, table: str = STAGED_EVENTS) -> dict[str, int]:
    return {
        key: river.lake.scan("river", table, partitions={key}).collect().height
        for key in river.keys
    }


def test_rows_that_went_by_way_of_the_disk_are_the_same(tmp_path: Path) -> None:
    in_memory, spilled = River(tmp_path / "memory"), River(tmp_path / "disk")
    for river in (in_memory, spilled):
        river.land(LOG, 3)
    landing = spilled.resources["landing"]
    landing._intakes["river"] = Intake(
        spilled.lake, spilled.settings.home, spilled.spec, rows_in_memory=0
    )
    in_memory.take_in(in_memory.keys)
    spilled.take_in(spilled.keys)
    for table in (STAGED_EVENTS, REJECTED_ROWS, STAGED_SOURCES):
        assert_frame_equal(in_memory.table(table), spilled.table(table))


def test_what_arrived_before_the_first_partition_is_in_it(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land([row(START_US - 9 * DAY_US), row(START_US + DAY_US)])
    river.take_in(river.keys)
    assert list(staged_by_partition(river).values()) == [1, 1, 0]


def test_rows_without_an_arrival_follow_the_row_or_the_file_before_them(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land_folder()
    river.land_file(0, [row(None), row(START_US + DAY_US), row(None)])
    river.land_file(1, [row(None)])
    river.take_in(river.keys)
    assert list(staged_by_partition(river, REJECTED_ROWS).values()) == [0, 3, 0]


def test_a_file_keeps_its_ordinal_whatever_comes_later(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land_folder()
    river.land_file(5, LOG[:9])
    intake = river.resources["landing"].of(river.spec)
    intake.survey()
    river.land_file(1, LOG[9:])
    river.land_file(5, LOG[:8])
    ordinals = {Path(file.name).stem: file.ordinal for file in intake.survey()}
    assert ordinals == {"005": 0, "001": 1}
    assert source_files.load(river.lake, "river").keys() == {
        "landing/001.ndjson",
        "landing/005.ndjson",
    }


def test_a_file_that_changes_between_survey_and_reading_is_an_error(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land(LOG)
    surveyed = river.resources["landing"].of(river.spec).survey()
    river.land(LOG[:-1])
    fresh = Intake(river.lake, river.settings.home, river.spec)
    with pytest.raises(SourceError, match="the file changed since it was surveyed; run again"):
        fresh.load(surveyed)


def test_a_partition_is_fed_by_the_files_whose_arrivals_reach_into_it(tmp_path: Path) -> None:
    river = River(tmp_path)
    river.land_folder()
    river.land_file(0, [row(START_US), row(START_US + 1)])
    river.land_file(1, [row(START_US + 1), row(START_US + DAY_US)])
    files = river.resources["landing"].of(river.spec).survey()
    fed = feeding(files, river.axis, river.keys)
    assert [[file.ordinal for file in fed[key]] for key in river.keys] == [[0, 1], [1], []]
