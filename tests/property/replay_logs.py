"""Nasty logs as files for whole replays, and the batch oracle that knows nothing of arrival order.

Times are a few microseconds apart, so that every boundary is met; a row is a line of NDJSON, some
of them broken, re-delivered, without a key, or with a value that cannot be read.
"""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

STATISTICS = ("sum", "mean", "min", "max", "first", "last")
# Name to (length, every), in microseconds.
WINDOWS = {"tumbling": (7, 7), "hopping": (10, 4)}
SKEW = 20
Row = dict[str, Any]


@dataclass(frozen=True)
class Log:
    """A spec, its lines in source order, and how the replay is called."""

    spec: dict[str, Any]
    lines: list[str]
    rows: list[Row | None]
    flush: bool
    until_us: int | None

    @property
    def by_counter(self) -> bool:
        return "event_id" in self.spec["columns"]

    def arguments(self) -> dict[str, Any]:
        return {"flush": self.flush, "until_us": self.until_us}


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    grace = draw(st.sampled_from(["0s", "3us", "9us"]))
    idle = draw(st.sampled_from(["off", "2us", "8us"]))
    capacity = draw(st.sampled_from([1, 2, 1000]))
    profile = {"grace": grace, "idle_timeout": idle, "capacity": capacity}
    return {
        "name": "nasty",
        "source": {"kind": "files", "path": "*.ndjson", "format": "ndjson"},
        "columns": {
            "key": "station",
            "event_time": {"column": "at", "unit": "us"},
            "arrival_time": {"column": "came", "unit": "us"},
            "values": {"level": "float", "hits": "int"},
            "carry": ["firmware"],
            **draw(st.sampled_from([{}, {"event_id": ["n"]}])),
        },
        "arrival": {"grain": "day", "start": "1970-01-01", "zone": "UTC"},
        "events": {"grain": "day"},
        "profiles": {"default": {**profile, "future_skew": f"{SKEW}us"}},
        "windows": [
            {"name": name, "length": f"{length}us", "every": f"{every}us"}
            for name, (length, every) in WINDOWS.items()
        ],
        "aggregates": {"level": list(STATISTICS), "hits": ["sum"]},
    }


def rows(came: int) -> st.SearchStrategy[Row]:
    """Draw a row that came at some time: mostly good, sometimes far from it."""
    return st.fixed_dictionaries(
        {
            "station": st.sampled_from(["a", "a", "b", "b", None]),
            "at": st.integers(came - 30, came + 4)
            | st.sampled_from([came + SKEW, came + SKEW + 1]),
            "came": st.just(came),
            "level": st.sampled_from([1.5, -0.0, 1e16, -1e16, 0.1, None, "NaN", "n/a", "Infinity"]),
            "hits": st.sampled_from([1, 2**53 + 1, None]),
            "firmware": st.sampled_from(["x", "x", None]),
            "n": st.sampled_from(["1", "2", "3", None]),
        }
    )


def delivered_again(listed: list[Row | None], now: int) -> st.SearchStrategy[Row]:
    """Draw a row that came before, to come once more; a fresh one if there is none."""
    again = [row | {"came": now} for row in listed if row is not None]
    return st.sampled_from(again) if again else rows(now)


@st.composite
def logs(draw: st.DrawFn, size: int = 22) -> Log:
    listed: list[Row | None] = []
    now = draw(st.integers(-10, 10))
    for pause in draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 14]), max_size=size)):
        now += pause
        fresh, broken = rows(now), st.none()
        listed.append(draw(st.one_of(fresh, fresh, fresh, delivered_again(listed, now), broken)))
    order = draw(st.permutations(listed)) if draw(st.booleans()) else listed
    lines = ["{broken" if row is None else json.dumps(row) for row in order]
    until = draw(st.none() | st.integers(now, now + 40))
    return Log(draw(specs()), lines, list(order), draw(st.booleans()), until)


def write(log: Log, folder: Path, splits: list[int]) -> tuple[Path, list[str]]:
    """Write the spec and the log, cut into files before the lines of these numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(log.spec, sort_keys=False))
    bounds = [0, *sorted(splits), len(log.lines)]
    paths = []
    for number, (low, high) in enumerate(pairwise(bounds)):
        path = folder / f"log-{number}.ndjson"
        path.write_text("".join(f"{line}\n" for line in log.lines[low:high]))
        paths.append(str(path))
    return spec, paths


def valid_rows(log: Log) -> list[Row]:
    """The rows that count, each identity once: a walk in arrival order that knows no watermark."""
    numbered = [row | {"seq": seq} for seq, row in enumerate(log.rows) if row is not None]
    seen: set[tuple[Any, ...]] = set()
    counted = []
    for row in sorted(numbered, key=lambda row: (row["came"], row["seq"])):
        readable = row["level"] not in {"n/a", "Infinity"}
        identity = _identity(log, row)
        if row["station"] is None or row["at"] > row["came"] + SKEW or identity in seen:
            continue
        if readable:
            seen.add(identity)
            counted.append(row)
    return sorted(counted, key=lambda row: (row["at"], row["seq"]))


def _identity(log: Log, row: Row) -> tuple[Any, ...]:
    if log.by_counter and row["n"] is not None:
        return (row["station"], "n", row["n"])
    return (row["station"], "at", row["at"])


def batch_oracle(log: Log, watermarks: dict[str, int | None]) -> dict[tuple[str, str, int], Row]:
    """Plain grouping of all valid rows by window, for the windows that are over."""
    windows: dict[tuple[str, str, int], list[Row]] = {}
    for row in valid_rows(log):
        for name, (length, every) in WINDOWS.items():
            start = row["at"] // every * every
            while start + length > row["at"]:
                reached = watermarks.get(row["station"])
                if log.flush or (reached is not None and start + length <= reached):
                    windows.setdefault((name, row["station"], start), []).append(row)
                start -= every
    return {window: _aggregated(members) for window, members in windows.items()}


def _aggregated(members: list[Row]) -> Row:
    """Of rows in order of time and seq; ``level`` has no reading where it is null or NaN."""
    levels = [row["level"] + 0.0 for row in members if row["level"] not in {None, "NaN"}]
    hits = [row["hits"] for row in members if row["hits"] is not None]
    return {
        "event_count": len(members),
        "known_at_us": max(row["came"] for row in members),
        "first_event_us": members[0]["at"],
        "last_event_us": members[-1]["at"],
        "hits_count": len(hits),
        "hits_sum": sum(hits) if hits else None,
        "level_count": len(levels),
        "level_sum": math.fsum(levels) if levels else None,
        "level_mean": math.fsum(levels) / len(levels) if levels else None,
        "level_min": min(levels, default=None),
        "level_max": max(levels, default=None),
        "level_first": levels[0] if levels else None,
        "level_last": levels[-1] if levels else None,
    }
