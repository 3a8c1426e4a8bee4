"""Nasty logs as files for whole replays, and the batch oracle that knows nothing of arrival order.

Times are a few microseconds apart, so that every boundary is met; a row is a line of NDJSON, some
of them broken, re-delivered, without a key, or with a value that cannot be read.
"""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import yaml
from hypothesis import strategies as st

STATISTICS = ("sum", "mean", "min", "max", "first", "last")
# Name to (length, every), in microseconds.
WINDOWS = {"tumbling": (9, 9), "hopping": (12, 6)}
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


def fresh_row(random: Random, came: int) -> Row:
    """Make a row that came at some time: mostly soon after it was sampled, sometimes far off."""
    behind = random.choice([0, 1, 2, 4, 7, random.randrange(30), -4, -SKEW, -SKEW - 1])
    return {
        "station": random.choice([*"ababababab", None]),
        "at": came - behind,
        "came": came,
        "level": random.choice([1.5, 2.5, 0.1, -0.0, 1e16, -1e16, None, "NaN", "n/a", "Infinity"]),
        "hits": random.choice([1, 2**53 + 1, None]),
        "firmware": random.choice(["x", "x", "x", None]),
        "n": random.choice([*map(str, range(60)), None]),
    }


def following(random: Random, listed: list[Row | None], now: int) -> Row | None:
    """Make what comes next: a fresh row, one that came before, or (None) a broken line."""
    again = [row | {"came": now} for row in listed if row is not None]
    chance = random.random()
    if chance < 0.05:
        return None
    return random.choice(again) if again and chance < 0.2 else fresh_row(random, now)


def long_log(random: Random, size: int) -> list[Row | None]:
    listed: list[Row | None] = []
    now = 0
    for _ in range(size):
        now += random.choice([0, 0, 1, 1, 2, 5, 14])
        listed.append(following(random, listed, now))
    return listed


@st.composite
def logs(draw: st.DrawFn, size: int = 50) -> Log:
    """Draw a log; the lines of half of them are not in arrival order.

    Rows come from a seed, for drawn one by one they are too much alike; which of them are in the
    log is drawn, so that a failure shrinks to few rows.
    """
    random = Random(draw(st.integers(0, 2**32)))  # noqa: S311 (no secret)
    kept = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    listed = [row for row, keep in zip(long_log(random, size), kept, strict=True) if keep]
    order = draw(st.permutations(listed)) if draw(st.booleans()) else listed
    lines = ["{broken" if row is None else json.dumps(row) for row in order]
    until = draw(st.none() | st.integers(0, 200))
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
