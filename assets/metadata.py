"""What the UI shows of a partition: counts, column schemas, figures that it plots over partitions.

Here belong the forms of metadata that several stages share. Figures of one stage are made there.
"""

from collections.abc import Mapping
from typing import Final

import dagster as dg
import polars as pl

from transforms import schemas
from transforms.durations import MINUTE_US

ROWS: Final = "dagster/row_count"
COLUMNS: Final = "dagster/column_schema"

Metadata = dict[str, dg.MetadataValue | int | float | str | None]


def table_schema(schema: pl.Schema) -> dg.TableSchema:
    """Return the columns of a table under the names of the lake."""
    stored = schemas.to_stored(schema.to_frame()).schema
    columns = [dg.TableColumn(name, str(kind)) for name, kind in stored.items()]
    return dg.TableSchema(columns=columns)


def row_counts(counts: Mapping[str, int]) -> Metadata:
    """Return rows by state, each as a figure of its own."""
    return {f"rows_{state}": count for state, count in counts.items()}


def lateness(rows: pl.DataFrame) -> Metadata:
    """Return by how many minutes rows arrived after they happened; nothing for no rows."""
    if not rows.height:
        return {}
    minutes = (rows[schemas.ARRIVAL_US] - rows[schemas.EVENT_US]) / MINUTE_US
    return {
        "lateness_p50_minutes": minutes.quantile(0.5, "linear"),
        "lateness_p99_minutes": minutes.quantile(0.99, "linear"),
        "lateness_max_minutes": minutes.max(),  # type: ignore[dict-item]
    }


def fraction(part: int, whole: int) -> float:
    """Return a share, zero of nothing."""
    return part / whole if whole else 0.0
