"""What is true of the DuckDB target alone: what people read with SQL, and who holds the file."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from assets.stores.targets.duckdb_target import DuckDBTarget
from transforms.errors import TargetError

SCHEMA = pl.Schema(
    {
        "stream": pl.String(),
        "window": pl.String(),
        "key": pl.String(),
        "window_start_us": pl.Int64(),
        "event_count": pl.Int64(),
        "revision": pl.Int64(),
        "published_at_us": pl.Int64(),
    }
)
ROWS = pl.DataFrame(
    [
        ("gauges", "minute", "a", 0, 2, 0, 1_000_000),
        ("gauges", "minute", "a", 0, 3, 1, 3_000_000),
        ("gauges", "minute", "b", 0, 1, 0, 1_000_000),
        ("gauges", "minute", "b", 0, 0, 1, 2_000_000),
    ],
    schema=SCHEMA,
    orient="row",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "deep" / "target.duckdb"
    with DuckDBTarget(file) as target:
        target.prepare("gauges", SCHEMA)
        target.publish("gauges", ROWS)
    return file


def test_the_view_that_people_read_has_no_tombstones(path: Path) -> None:
    with duckdb.connect(path, read_only=True) as connection:
        rows = connection.sql("select key, event_count from gauges.windows").fetchall()
    assert rows == [("a", 3)]


def test_people_ask_what_we_said_at_a_time(path: Path) -> None:
    query = "select key, event_count from gauges.windows_as_of(timestamptz '{}+00') order by key"
    with duckdb.connect(path, read_only=True) as connection:
        early = connection.sql(query.format("1970-01-01 00:00:01")).fetchall()
        later = connection.sql(query.format("1970-01-01 00:00:02.5")).fetchall()
    assert early == [("a", 2), ("b", 1)]
    assert later == [("a", 2)]


def test_times_are_timestamps_with_a_zone_and_no_unit_in_their_names(path: Path) -> None:
    with duckdb.connect(path, read_only=True) as connection:
        columns = dict(
            connection.sql(
                "select column_name, data_type from duckdb_columns()"
                " where table_name = 'windows_revisions'"
            ).fetchall()
        )
    assert columns["window_start"] == columns["published_at"] == "TIMESTAMP WITH TIME ZONE"
    assert not [name for name in columns if name.endswith("_us")]


def test_a_file_held_by_another_process_names_the_holder(path: Path) -> None:
    hold = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]);"
        " print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(TargetError, match=rf"process {holder.pid}\)") as raised,
            DuckDBTarget(path, patience_s=0.2),
        ):
            pass
        holder.stdin.close()
        # The holder is going: who is patient gets the file.
        with DuckDBTarget(path) as target:
            target.prepare("gauges", SCHEMA)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_database_is_a_target_error(tmp_path: Path) -> None:
    file = tmp_path / "text.duckdb"
    file.write_text("not a database " * 1_000)
    with pytest.raises(TargetError, match=r"text\.duckdb"), DuckDBTarget(file):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_made_is_a_target_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        pytest.raises(TargetError, match="cannot be made"),
        DuckDBTarget(tmp_path / "x" / "t.duckdb"),
    ):
        pass


def test_a_folder_that_is_a_file_is_a_target_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(TargetError, match="cannot be made"),
        DuckDBTarget(tmp_path / "file" / "t.duckdb"),
    ):
        pass


def test_a_target_that_is_not_open_says_so(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="not open"):
        DuckDBTarget(tmp_path / "target.duckdb").current("gauges")


@pytest.mark.parametrize("name", ["information_schema", "temp", "system", "gauges"])
def test_a_stream_that_the_engine_would_mistake_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "gauges.duckdb"
    with DuckDBTarget(file) as target, pytest.raises(TargetError, match=name):
        target.prepare(name, SCHEMA)
