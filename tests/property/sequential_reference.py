"""The contract of reordering, row by row: slow, plain, and independent of the vectorized code.

It shares nothing with ``transforms`` but the spec and the names of columns. It reads like SEMANTICS
sections 2 and 3, and that is its only purpose: what it says of a log is what must be said of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isnan
from typing import Any

from transforms.spec import Profile, StreamSpec

Row = dict[str, Any]
Content = tuple[Any, ...]

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


@dataclass
class Key:
    """What is known of one key: its watermark (None: minus infinity), buffer, and counted rows."""

    watermark: int | None = None
    last_arrival: int | None = None
    profile: str = "default"
    max_event: int | None = None
    held: list[Row] = field(default_factory=list)
    counted: dict[Content, list[Row]] = field(default_factory=dict)

    def raise_to(self, time: int) -> None:
        """Let W rise, never fall; a time below int64 is minus infinity."""
        if time > LOWEST:
            self.watermark = time if self.watermark is None else max(self.watermark, time)

    def is_above(self, time: int) -> bool:
        return self.watermark is not None and time < self.watermark


@dataclass
class Reference:
    """Judge rows in arrival order; every row ends in one of the lists."""

    spec: StreamSpec
    keys: dict[str, Key] = field(default_factory=dict)
    ordered: list[Row] = field(default_factory=list)
    dead_letters: list[Row] = field(default_factory=list)
    duplicates: list[Row] = field(default_factory=list)

    def judge(self, row: Row) -> None:
        key = self.keys.setdefault(row["key"], Key())
        own = self.profile_of(row)
        self.take_idle_step(key, row["arrival_us"])
        row["is_late"] = key.max_event is not None and row["event_us"] < key.max_event
        if row["event_us"] > row["arrival_us"] + own.future_skew_us:
            return self.bury(key, row, "future_timestamp")
        first = self.first_counted(key, row)
        if first is not None and self.content(first) == self.content(row):
            return self.duplicates.append({**row, "duplicate_of_seq": first["seq"]})
        if first is not None:
            self.bury(key, row, "conflicting_duplicate")
        elif row["unreadable"] is not None:
            self.bury(key, row, "invalid_value")
        else:
            self.count(key, row, own)
        return self.move(key, row, own)

    def count(self, key: Key, row: Row, own: Profile) -> None:
        """Take in a row that counts, be it in time, behind, or without room."""
        key.counted.setdefault(self.identity(row), []).append(row)
        self.release(key)
        if key.is_above(row["event_us"]):
            missed, _ = self.missed_and_total(key, row)
            self.bury(key, row, "late_closed_window" if missed else "behind_watermark")
        elif len(key.held) >= own.capacity:
            self.bury(key, row, "buffer_overflow")
        else:
            key.held.append(row)

    def move(self, key: Key, row: Row, own: Profile) -> None:
        """Let a moving row move W, be a sign of life, and set the profile of its key."""
        key.raise_to(row["event_us"] - own.grace_us)
        key.last_arrival, key.profile = row["arrival_us"], self.profile_name(row)
        newest = row["event_us"] if key.max_event is None else key.max_event
        key.max_event = max(newest, row["event_us"])
        self.release(key)

    def take_idle_step(self, key: Key, now: int) -> None:
        profile = self.spec.profiles.named[key.profile]
        idle = profile.idle_timeout_us
        if key.last_arrival is not None and idle is not None and now - key.last_arrival >= idle:
            key.raise_to(now - idle - profile.grace_us)

    def release(self, key: Key) -> None:
        ready = [row for row in key.held if key.is_above(row["event_us"])]
        self.ordered += sorted(ready, key=lambda row: (row["event_us"], row["seq"]))
        key.held = [row for row in key.held if not key.is_above(row["event_us"])]

    def finish(self, frontier_us: int | None) -> None:
        """Take the idle step of every key at the end of arrivals that are known to be complete."""
        for key in self.keys.values():
            if frontier_us is not None:
                self.take_idle_step(key, frontier_us)
            self.release(key)

    def watermarks(self) -> list[Row]:
        """Return what is known of each key that ever had a moving row."""
        return [
            {
                "key": name,
                "watermark_us": key.watermark,
                "last_arrival_us": key.last_arrival,
                "profile": key.profile,
                "max_event_us": key.max_event,
            }
            for name, key in self.keys.items()
            if key.last_arrival is not None
        ]

    def bury(self, key: Key, row: Row, reason: str) -> None:
        missed, total = self.missed_and_total(key, row)
        late_by = None if key.watermark is None else min(key.watermark - row["event_us"], HIGHEST)
        said = {"reason": reason, "watermark_us": key.watermark, "lateness_us": late_by}
        windows = {"windows_missed": missed, "windows_total": total}
        self.dead_letters.append({**row, **said, **windows})

    def first_counted(self, key: Key, row: Row) -> Row | None:
        """Return the first row of this identity that counts, within the dedup horizon if any."""
        horizon = self.spec.columns.dedup_horizon_us
        for other in key.counted.get(self.identity(row), []):
            if horizon is None or abs(other["event_us"] - row["event_us"]) <= horizon:
                return other
        return None

    def identity(self, row: Row) -> Content:
        columns = self.spec.columns
        parts = [self.identity_part(row, name) for name in columns.event_id]
        if not parts or None in parts:
            return ("by event time", row["event_us"])
        return ("by event id", *parts)

    def identity_part(self, row: Row, name: str) -> Any:
        columns = self.spec.columns
        if name == columns.event_time.column:
            return row["event_us"]
        if name in columns.key:
            return row["key"]
        return row[name if name in columns.carry else f"id_{name}"]

    def content(self, row: Row) -> Content:
        """Return event time, values, carried columns; what cannot be read is like nothing else."""
        columns = self.spec.columns
        values = (None if is_nan(row[name]) else row[name] for name in columns.values)
        carried = (row[name] for name in columns.carry)
        unread = None if row["unreadable"] is None else object()
        return (row["event_us"], *values, *carried, unread)

    def profile_name(self, row: Row) -> str:
        profiles = self.spec.profiles
        return row["profile"] if profiles.by else profiles.key_map.get(row["key"], "default")

    def profile_of(self, row: Row) -> Profile:
        return self.spec.profiles.named[self.profile_name(row)]

    def missed_and_total(self, key: Key, row: Row) -> tuple[int, int]:
        ends = list(self.window_ends(row["event_us"]))
        return sum(key.watermark is not None and end <= key.watermark for end in ends), len(ends)

    def window_ends(self, time: int) -> Iterator[int]:
        """Return the ends of the windows that hold a time: [start, end), on the epoch's grid."""
        for window in self.spec.windows:
            start = time // window.every_us * window.every_us
            while start + window.length_us > time:
                yield start + window.length_us
                start -= window.every_us
