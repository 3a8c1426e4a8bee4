"""Small streams and staged rows for examples: times in microseconds, keys of one letter."""

from typing import Any

import polars as pl
import yaml

from transforms import schemas
from transforms.reorder import Outcome, State, advance, empty_state
from transforms.spec import StreamSpec, load_spec

SECOND = 1_000_000


def stream(
    *,
    grace: str = "10s",
    idle_timeout: str = "off",
    capacity: int = 1000,
    future_skew: str = "5m",
    profiles: dict[str, Any] | None = None,
    **columns: Any,
) -> StreamSpec:
    """Return a stream of one value and one carried column; ``columns`` adds to its columns."""
    numbers = {"grace": grace, "idle_timeout": idle_timeout, "future_skew": future_skew}
    declared = {
        "name": "small",
        "source": {"kind": "files", "path": "*.ndjson", "format": "ndjson"},
        "columns": {
            "key": "station",
            "event_time": {"column": "at", "unit": "us"},
            "arrival_time": {"column": "came", "unit": "us"},
            "values": {"level": "float"},
            "carry": ["firmware"],
            **columns,
        },
        "arrival": {"grain": "day", "start": "1970-01-01", "zone": "UTC"},
        "events": {"grain": "day"},
        "profiles": {"default": {**numbers, "capacity": capacity}, **(profiles or {})},
        "windows": [{"name": "minute", "every": "1m"}],
    }
    return load_spec(yaml.safe_dump(declared), file="small.yaml")


def staged(spec: StreamSpec, *rows: tuple[float, float] | dict[str, Any]) -> pl.DataFrame:
    """Return staged rows, each given as (event, arrival) in seconds, or by its columns.

    What is not given: key ``a``, level 1.0, the place among the rows as ``seq``.
    """
    schema = schemas.staged_schema(spec)
    listed = [_row(seq, row) for seq, row in enumerate(rows)]
    whole = [{name: row.get(name) for name in schema} for row in listed]
    return pl.DataFrame(whole, schema=schema).sort(schemas.ARRIVAL_US, schemas.SEQ)


def _row(seq: int, given: tuple[float, float] | dict[str, Any]) -> dict[str, Any]:
    row = dict(given) if isinstance(given, dict) else {"at": given}
    event, arrival = row.pop("at")
    times = {"event_us": round(event * SECOND), "arrival_us": round(arrival * SECOND)}
    return {"seq": seq, "key": "a", "level": 1.0, **times, **row}


def reorder(
    spec: StreamSpec,
    *rows: tuple[float, float] | dict[str, Any],
    state: State | None = None,
    earlier: pl.DataFrame | None = None,
    until: float | None = None,
) -> Outcome:
    """Advance by the rows; ``until`` is the frontier in seconds."""
    return advance(
        spec,
        staged(spec, *rows),
        empty_state(spec) if state is None else state,
        schemas.row_schema(spec).to_frame() if earlier is None else earlier,
        None if until is None else round(until * SECOND),
    )


def fates(outcome: Outcome) -> dict[int, str]:
    """Return what became of every row, by ``seq``."""
    refused = outcome.dead_letters.select(schemas.SEQ, schemas.REASON)
    by_state = {
        "ordered": outcome.ordered,
        "held": outcome.state.held,
        "duplicate": outcome.duplicates,
    }
    told = {seq: state for state, frame in by_state.items() for seq in frame[schemas.SEQ]}
    return dict(sorted({**told, **dict(refused.iter_rows())}.items()))


def watermark(outcome: Outcome, key: str = "a") -> float | None:
    """Return W of a key at the end, in seconds."""
    of_key = outcome.state.watermarks.filter(pl.col(schemas.KEY) == key)
    us = of_key[schemas.WATERMARK_US].item()
    return None if us is None else us / SECOND
