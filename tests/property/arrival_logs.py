"""Nasty arrival logs for Hypothesis: a few microseconds, many ties, every fate, many specs.

Times lie so close together that every boundary of the contract is met again and again.
"""

from typing import Any

import polars as pl
import yaml
from hypothesis import strategies as st

from transforms import schemas
from transforms.spec import Profiles, StreamSpec, load_spec

KEYS = ("a", "b", "c")
LINKS = ("default", "slow", "blind")
# So old that the distance no longer fits beside a key code in 64 bits.
AGES_AGO = 2**62
IDENTITIES: tuple[dict[str, Any], ...] = (
    {},
    {"event_id": ["at"]},
    {"event_id": ["n"]},
    {"event_id": ["n"], "dedup_horizon": "3us"},
    {"event_id": ["at", "n"]},
    {"event_id": ["n", "firmware"], "dedup_horizon": "6us"},
    {"event_id": ["firmware"]},
)
WINDOWS = (
    [{"name": "short", "every": "7us"}, {"name": "hop", "length": "10us", "every": "4us"}],
    [{"name": "long", "every": "1ms"}],
)

CHOICES: tuple[dict[str, Any], ...] = (
    {},
    {"by": "link"},
    {"key_map": {"b": "slow", "c": "blind"}},
)


def _us(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(lambda us: f"{us}us")


def profiles() -> st.SearchStrategy[dict[str, Any]]:
    """Draw the four numbers; zero grace, no timeout and a buffer of one row are common."""
    return st.fixed_dictionaries(
        {
            "grace": st.just("0s") | _us(1, 12),
            "idle_timeout": st.just("off") | _us(0, 10),
            "capacity": st.sampled_from([1, 2, 3, 1000]),
            "future_skew": st.just("0s") | _us(5, 40),
        }
    )


@st.composite
def specs(draw: st.DrawFn) -> StreamSpec:
    """Draw a spec: how rows are identified, how profiles are chosen, with a grid or without."""
    chosen: dict[str, Any] = draw(st.sampled_from(CHOICES))
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
        "profiles": {**chosen, **draw(numbers_of_links(chosen))},
        "windows": draw(st.sampled_from(WINDOWS)),
        **draw(st.sampled_from([{}, {"resolution": "2us"}])),
    }
    return load_spec(yaml.safe_dump(declared, sort_keys=False), file="nasty.yaml")


def numbers_of_links(chosen: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw the profiles of all links; of the default alone where nothing chooses another."""
    return st.fixed_dictionaries({name: profiles() for name in (LINKS if chosen else LINKS[:1])})


@st.composite
def with_other_numbers(draw: st.DrawFn, spec: StreamSpec) -> StreamSpec:
    """Draw the same spec with other numbers in its profiles."""
    chosen = spec.profiles.model_dump(include={"by", "key_map"}, exclude_defaults=True)
    numbers = Profiles.model_validate({**chosen, **draw(numbers_of_links(chosen))})
    return spec.model_copy(update={"profiles": numbers})


def new_rows() -> st.SearchStrategy[dict[str, Any]]:
    """Draw a row that is no copy: how long after the row before it came, how old its event is."""
    return st.fixed_dictionaries(
        {
            "key": st.sampled_from(KEYS),
            "delay": st.integers(-6, 12) | st.integers(0, 3) | st.sampled_from([40, AGES_AGO]),
            "pause": st.sampled_from([0, 0, 0, 1, 1, 2, 5, 12]),
            "profile": st.sampled_from(LINKS),
            "level": st.sampled_from([None, float("nan"), 1.0, 2.0]),
            "hits": st.sampled_from([None, 1]),
            "firmware": st.sampled_from([None, "x"]),
            "n": st.sampled_from([None, "1", "1", "2", "3"]),
            "unreadable": st.sampled_from([None] * 7 + ['{"hits":"?"}']),
        }
    )


def copies() -> st.SearchStrategy[dict[str, Any]]:
    """Draw a re-delivery: of which row before it, and what changed on the way, if anything."""
    changes = st.sampled_from([{}, {}, {"profile": "slow"}, {"level": 3.0}, {"firmware": "y"}])
    pauses = st.sampled_from([0, 1, 4])
    return st.fixed_dictionaries({"of": st.integers(0, 30), "pause": pauses, "change": changes})


@st.composite
def logs(draw: st.DrawFn, spec: StreamSpec) -> pl.DataFrame:
    """Draw staged rows in arrival order, with arrivals that tie and silences of all lengths."""
    row = st.one_of(new_rows(), new_rows(), new_rows(), copies())
    drawn = draw(st.lists(row, min_size=draw(st.sampled_from([0, 12])), max_size=24))
    seqs = draw(st.permutations(range(len(drawn))))
    return _staged(spec, drawn, seqs, start=draw(st.integers(-20, 5)))


def _staged(
    spec: StreamSpec, drawn: list[dict[str, Any]], seqs: list[int], start: int
) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    now = start
    for row, seq in zip(drawn, seqs, strict=True):
        now += row["pause"]
        if "of" not in row:
            rows.append({**_row(spec, row, now - row["delay"]), "arrival_us": now, "seq": seq})
        elif rows:
            first = rows[row["of"] % len(rows)]
            rows.append({**first, **row["change"], "arrival_us": now, "seq": seq})
    schema = schemas.staged_schema(spec)
    frame = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
    return frame.sort(schemas.ARRIVAL_US, schemas.SEQ)


def _row(spec: StreamSpec, drawn: dict[str, Any], event: int) -> dict[str, Any]:
    grid = spec.resolution_us or 1
    return {
        **drawn,
        "site": "s",
        "station": drawn["key"],
        "event_us": event // grid * grid,
        "original_event_us": event,
        "hits": None if drawn["unreadable"] else drawn["hits"],
        "id_n": drawn["n"],
    }
