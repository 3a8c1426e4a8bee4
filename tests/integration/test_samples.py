"""The samples are what the guides say of them."""

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from transforms.spec import load_spec

ROOT = Path(__file__).parents[2]
MINUTE_US = 60_000_000


def sample(name: str) -> ModuleType:
    """A script of the samples, as a module."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / "samples" / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(packed: Path) -> list[bytes]:
    """The lines of a gzipped file."""
    return gzip.decompress(packed.read_bytes()).splitlines()


@pytest.fixture(scope="module")
def reports() -> pl.DataFrame:
    flights = sample("flights.py")
    frame: pl.DataFrame = flights.as_reports(flights.read_flights())
    return frame


def test_the_flights_are_as_late_as_the_guide_says(reports: pl.DataFrame) -> None:
    known = reports.drop_nulls("landed")
    lateness = (known["landed"] - known["took_off"]).dt.total_minutes()
    assert (reports.height, known.height) == (336_776, 327_346)
    assert (lateness.min(), lateness.median(), lateness.max()) == (20, 129, 695)
    assert lateness.quantile(0.99) == 364


def test_most_flights_are_reported_behind_a_later_one_of_their_airport(
    reports: pl.DataFrame,
) -> None:
    arrived = reports.drop_nulls("landed").sort("landed", maintain_order=True)
    newest = pl.col("took_off").cum_max().shift(1).over("origin")
    behind = arrived.select((newest > pl.col("took_off")).fill_null(value=False).mean()).item()
    assert round(behind, 3) == 0.827


def test_landing_files_hold_every_flight_in_arrival_order_and_are_the_same_each_time(
    reports: pl.DataFrame, tmp_path: Path
) -> None:
    flights = sample("flights.py")
    week = reports.filter(pl.col("day") < pl.date(2013, 1, 8))
    for folder in (tmp_path / "one", tmp_path / "two"):
        assert flights.write_landing_files(week, folder) == 7
    files = sorted((tmp_path / "one").iterdir())
    rows = [json.loads(line) for file in files for line in lines_of(file)]
    landed = [row["landed"] for row in rows if row["landed"]]
    assert len(rows) == week.height
    assert landed == sorted(landed)
    for file in files:
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_one_reception_is_made_for_each_gateway_that_heard_a_frame(tmp_path: Path) -> None:
    heard = [{"gatewayID": "g1", "time": "2023-06-23T09:10:28.649Z", "rssi": -112, "loRaSNR": -5}]
    frames = [
        {"devEUI": "d", "fCnt": 7, "_timestamp": 2, "rxInfo": [*heard, {"gatewayID": "g2"}]},
        {"devEUI": "d", "_timestamp": 1, "margin": 10},
    ]
    archive, out = tmp_path / "archive.gz", tmp_path / "out.gz"
    archive.write_bytes(gzip.compress("\n".join(map(json.dumps, frames)).encode()))
    assert sample("real_logs/receptions.py").write_receptions([archive], out) == 2
    rows = [json.loads(line) for line in lines_of(out)]
    assert [(row["gateway"], row["gateway_time"], row["reception"]) for row in rows] == [
        ("g1", "2023-06-23T09:10:28.649Z", 0),
        ("g2", None, 1),
    ]


@pytest.mark.parametrize("path", sorted(ROOT.glob("samples/**/*.yaml")), ids=lambda path: path.stem)
def test_the_spec_of_a_real_log_is_a_spec_named_like_its_file(path: Path) -> None:
    assert load_spec(path.read_text(), file=path.name).name == path.stem
