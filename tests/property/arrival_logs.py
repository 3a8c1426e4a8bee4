"""Nasty arrival logs for Hypothesis: a few microseconds, many ties, every fate, many specs.

Times lie so close together that every boundary of the contract is met again and again.
"""

from functools import cache
from typing import Any

import polars as pl
import yaml
from hypothesis import strategies as st

from transforms import schemas
from transforms.spec import StreamSpec, load_spec

KEYS = ("a", "b", "c")
LINKS = ("default", "slow", "blind")
IDENTITIES: tuple[dict[str, Any], ...] = (
    {},
    {"event_id": ["at"]},
    {"event_id": ["n"]},
    {"event_id": ["n"], "dedup_horizon": "3us"},
    {"event_id": ["at", "n"]},
    {"event_id": ["n", "firmware"], "dedup_horizon": "6us"},
    {"event_id": ["firmware"]},
)


def _us(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(lambda us: f"{us}us")


def profiles() -> st.SearchStrategy[dict[str, Any]]:
    """Draw the four numbers; zero grace, no timeout and a buffer of one row are common."""
    return st.fixed_dictionaries(
        {
            "grace": st.just("0s") | _us(1, 12),
            "idle_timeout": st.just("off") | _us(1, 10),
            "capacity": st.sampled_from([1, 2, 3, 1000]),
            "future_skew": st.just("0s") | _us(5, 40),
        }
    )


@st.composite
def specs(draw: st.DrawFn) -> StreamSpec:
    """Draw a spec: how rows are identified, how profiles are chosen, with a grid or without."""
    chosen = draw(st.sampled_from(["default", "by", "key_map"]))
    links = {name: draw(profiles()) for name in LINKS[: 1 if chosen == "default" else 3]}
    by = {"by": {"by": "link"}, "key_map": {"key_map": {"b": "slow", "c": "blind"}}}
    declared = {
        "name": "nasty",
        "source": {"kind": "files", "path": "*.ndjson", "format": "ndjson"},
        "columns": {
            "key": draw(st.sampled_from(["station", ["site", "station"]])),
            "event_time": {"column": "at", "unit": "us"},
            "arrival_time": {"column": "came", "unit": "us"},
            "values": {"level": "float", "hits": "int"},
            "carry": ["firmware"],
            **draw(st.sampled_from(IDENTITIES)),
        },
        "arrival": {"grain": "day", "start": "1970-01-01", "zone": "UTC"},
        "events": {"grain": "day"},
        "profiles": {**by.get(chosen, {}), **links},
        "windows": [{"name": "w", "every": "7us"}, {"name": "hop", "length": "10us", "every": "4us"}],
        **draw(st.sampled_from([{}, {"resolution": "2us"}])),
    }
    return spec_of(yaml.safe_dump(declared, sort_keys=False))


@cache
def spec_of(text: str) -> StreamSpec:
    return load_spec(text, file="nasty.yaml")


@st.composite
def logs(draw: st.DrawFn, spec: StreamSpec, size: int = 24) -> pl.DataFrame:
    """Draw staged rows in arrival order, with arrivals that tie and silences of all lengths."""
    row = st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "event_us": st.integers(-15, 25),
            "pause": st.sampled_from([0, 0, 0, 1, 1, 2, 5, 12]),
            "profile": st.sampled_from(LINKS),
            "level": st.sampled_from([None, float("nan"), 1.0, 2.0]),
            "hits": st.sampled_from([None, 1]),
            "firmware": st.sampled_from([None, "x"]),
            "n": st.sampled_from([None, "1", "1", "2"]),
            "unreadable": st.sampled_from([None, None, None, None, '{"hits":"?"}']),
        }
    )
    drawn = draw(st.lists(row, max_size=size))
    seqs = draw(st.permutations(range(len(drawn))))
    start = draw(st.integers(-20, 5))
    return _staged(spec, drawn, seqs, start)


def _staged(
    spec: StreamSpec, drawn: list[dict[str, Any]], seqs: list[int], start: int
) -> pl.DataFrame:
    rows, now = [], start
    for row, seq in zip(drawn, seqs, strict=True):
        now += row["pause"]
        grid = spec.resolution_us or 1
        event = row["event_us"] // grid * grid
        part = {"site": "s", "station": row["key"]}
        times = {"event_us": event, "original_event_us": row["event_us"], "arrival_us": now}
        hits = None if row["unreadable"] else row["hits"]
        rows.append({**row, **part, **times, "hits": hits, "seq": seq, "id_n": row["n"]})
    schema = schemas.staged_schema(spec)
    listed = [{name: row[name] for name in schema} for row in rows]
    frame = pl.DataFrame(listed, schema=schema)
    return frame.sort(schemas.ARRIVAL_US, schemas.SEQ)


def frontiers(arrivals: list[int], cuts: list[int]) -> list[tuple[int, int]]:
    """Return, for each cut before a row, the first and last time at which a partition may end."""
    return [(arrivals[cut - 1] + 1, arrivals[cut]) for cut in cuts]
