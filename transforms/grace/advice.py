"""What a sweep says to a person: the grace to choose, the capacity that goes with it, in words.

The rule, which the words repeat: the advised grace is the smallest candidate that leaves no more
rows behind than are allowed (by default 1 %). A larger one is advised where it is cheap, which is
to say that it delays the median window by a tenth of the window's length at most: the knee of the
curve, or else the grace in force, which then may stay. The capacity is grace x peak rate x 1.5, and
no less than the measured peak x 1.5.

Here belongs choosing and wording. The figures are those of ``grace``; where they are shown is no
matter of this module.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, Final

import polars as pl

from transforms.durations import DAY_US, HOUR_US, MINUTE_US, SECOND_US, format_duration
from transforms.grace.sweep import (
    AMENDED,
    BEHIND_FRACTION,
    DEAD,
    DELAY_MEDIAN_US,
    GRACE_US,
    PEAK_ROWS,
    Sweep,
    busiest_rate,
    candidates,
    knee,
    sampling_interval,
)
from transforms.grace.windows import shortest_window
from transforms.judging.keyed import FOREVER

ALLOWED_BEHIND: Final = 0.01
HEADROOM: Final = 1.5
# p99.9 is near the grace in force from this part of it on.
NEAR: Final = 0.8
# A knee is cheap that delays windows by one part in so many of their length.
CHEAP: Final = 10
# The peak rate is that of the busiest span of so many usual intervals, of a minute at least.
_SPAN_INTERVALS: Final = 10


@dataclass(frozen=True)
class Capacity:
    """The room a grace takes: ``by_rate`` is grace x peak rate x 1.5, ``measured`` the peak."""

    rows: int
    by_rate: int
    measured: int
    rate_per_s: float
    span_us: int


@dataclass(frozen=True)
class Advice:
    """What the stored arrivals of one profile say; ``curve`` has a row for each candidate.

    ``in_force``, ``advised`` and, in a what-if, ``tried`` are points of the curve; the first and
    the last are judged with the capacity in force.
    """

    profile: str
    keys: int
    window: str
    curve: pl.DataFrame
    in_force: dict[str, Any]
    advised: dict[str, Any]
    tried: dict[str, Any] | None
    knee_us: int | None
    allowed: float
    needed_p999_us: int
    capacity_in_force: int
    capacity: Capacity
    days: float

    @property
    def warnings(self) -> list[str]:
        """What needs a person's attention."""
        return list(_warnings(self))

    @property
    def words(self) -> list[str]:
        """The advice in sentences."""
        return list(_words(self))

    def as_record(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        record = asdict(self) | {"curve": self.curve.to_dicts()}
        return record | {"words": self.words, "warnings": self.warnings}


def advise(
    sweep: Sweep,
    *,
    tried: Sweep | None = None,
    allowed: float = ALLOWED_BEHIND,
    graces: list[int] | None = None,
) -> Advice | None:
    """Judge candidates and choose; None where no row uses the profile.

    ``tried`` is the sweep of the same rows under other numbers, for a what-if.
    """
    if not sweep.rows:
        return None
    curve = sweep.curve(graces or candidates(sweep))
    at_knee = knee(curve)
    in_force = _in_force(sweep)
    cheap = shortest_window(sweep.spec).max_length_us // CHEAP
    chosen = _choose(curve, [at_knee, in_force[GRACE_US]], allowed, cheap)
    arrivals = sweep.reach.log.rows.arrival
    return Advice(
        profile=sweep.profile,
        keys=sweep.reach.log.keys.len(),
        window=shortest_window(sweep.spec).name,
        curve=curve,
        in_force=in_force,
        advised=chosen,
        tried=None if tried is None else _in_force(tried),
        knee_us=at_knee,
        allowed=allowed,
        needed_p999_us=sweep.needed_quantile(0.999),
        capacity_in_force=sweep.spec.profiles.named[sweep.profile].capacity,
        capacity=capacity_of(sweep, chosen),
        days=max(int(arrivals.max()) - int(arrivals.min()), HOUR_US) / DAY_US,
    )


def _in_force(sweep: Sweep) -> dict[str, Any]:
    numbers = sweep.spec.profiles.named[sweep.profile]
    return sweep.point(numbers.grace_us, numbers.capacity)


def _choose(
    curve: pl.DataFrame, larger: list[int | None], allowed: float, cheap_us: int
) -> dict[str, Any]:
    """Return the first point that leaves few enough rows behind, or the first of cheap larger ones.

    ``larger`` are graces that deserve it, the best first.
    """
    enough = curve.filter(pl.col(BEHIND_FRACTION) <= allowed)
    first = (enough.head(1) if enough.height else curve.tail(1)).row(0, named=True)
    deserving = (point_at(curve, grace) for grace in larger if grace is not None)
    return next((point for point in deserving if _is_cheap(first, point, cheap_us)), first)


def _is_cheap(first: dict[str, Any], other: dict[str, Any], cheap_us: int) -> bool:
    delays = first[DELAY_MEDIAN_US], other[DELAY_MEDIAN_US]
    if None in delays or other[GRACE_US] < first[GRACE_US]:
        return False
    return bool(delays[1] - delays[0] <= cheap_us)


def point_at(curve: pl.DataFrame, grace_us: int) -> dict[str, Any]:
    """Return the point of a candidate."""
    return curve.filter(pl.col(GRACE_US) == grace_us).row(0, named=True)


def capacity_of(sweep: Sweep, point: dict[str, Any]) -> Capacity:
    """Return the capacity that goes with a point of the curve."""
    span = max(MINUTE_US, _SPAN_INTERVALS * sampling_interval(sweep))
    rate = busiest_rate(sweep, span)
    by_rate = ceil(point[GRACE_US] / SECOND_US * rate * HEADROOM)
    measured = point[PEAK_ROWS]
    rows = max(by_rate, ceil(measured * HEADROOM), 1)
    return Capacity(rows, by_rate, measured, rate, span)


def _warnings(advice: Advice) -> Iterator[str]:
    grace = advice.in_force[GRACE_US]
    needed = advice.needed_p999_us
    if needed >= FOREVER:
        yield "more than one row in a thousand is behind whatever the grace: its key has another"
    elif needed > grace:
        yield (
            f"one row in a thousand comes more than {plain(needed)} behind the newest of its key,"
            f" beyond the grace in force of {plain(grace)}"
        )
    elif grace and needed >= NEAR * grace:
        yield (
            f"p99.9 of the rows needs {plain(needed)}, which nears the grace in force of"
            f" {plain(grace)}: a little more lateness becomes dead letters"
        )
    if advice.in_force[PEAK_ROWS] > advice.capacity_in_force:
        yield (
            f"the busiest key needs room for {advice.in_force[PEAK_ROWS]:,} rows, the capacity in"
            f" force is {advice.capacity_in_force:,}: rows are refused for want of room"
        )


def _words(advice: Advice) -> Iterator[str]:
    point = advice.advised
    if point[BEHIND_FRACTION] == 0 and advice.curve[BEHIND_FRACTION].max() == 0:
        yield "no row comes behind a newer one of its key: no grace is needed for order"
    else:
        yield f"choose a grace of {plain(point[GRACE_US])}: {_why(advice)}"
    yield _room(advice)
    yield from _change(advice)


def _why(advice: Advice) -> str:
    grace, behind = advice.advised[GRACE_US], f"{percent(advice.advised[BEHIND_FRACTION])} of rows"
    if advice.advised[BEHIND_FRACTION] > advice.allowed:
        why = f"no candidate leaves less than its {behind} behind"
    elif grace == advice.knee_us:
        return f"the knee of the curve, which leaves {behind} behind"
    elif grace == advice.in_force[GRACE_US]:
        why = f"the one in force leaves {behind} behind, and less would publish hardly sooner"
    else:
        why = f"the smallest that leaves at most {percent(advice.allowed)} behind, namely {behind}"
    return f"{why}; {_knee(advice)}" if advice.knee_us is not None else why


def _knee(advice: Advice) -> str:
    at_knee = point_at(advice.curve, advice.knee_us or 0)
    behind, delay = percent(at_knee[BEHIND_FRACTION]), at_knee[DELAY_MEDIAN_US]
    when = "" if delay is None else f", windows {plain(delay)} after their end"
    return f"the knee, {plain(at_knee[GRACE_US])}, would leave {behind}{when}"


def _room(advice: Advice) -> str:
    room, grace = advice.capacity, plain(advice.advised[GRACE_US])
    rate = f"{room.rate_per_s:.3g} rows/s in its busiest {plain(room.span_us)}"
    words = f"capacity {room.rows:,}: {grace} x {rate} x {HEADROOM:g} = {room.by_rate:,}"
    words += f"; the fullest buffer measured needs {room.measured:,}"
    if room.by_rate < room.measured * HEADROOM:
        words += f", so the capacity is {room.measured:,} x {HEADROOM:g}"
    return words


def _change(advice: Advice) -> Iterator[str]:
    """Say what going from the grace in force to the advised one, and to the tried one, costs."""
    now = advice.in_force
    if advice.advised[GRACE_US] == now[GRACE_US]:
        yield f"the grace in force, {plain(now[GRACE_US])}, is the one to choose: nothing to change"
    else:
        yield f"{cost(now, advice.advised, advice.days)}"
    if advice.tried is not None:
        yield f"tried: {cost(now, advice.tried, advice.days)}"


def cost(old: dict[str, Any], new: dict[str, Any], days: float) -> str:
    """Say what changes from one point to another, counts by day."""
    change = f"from {plain(old[GRACE_US])} to {plain(new[GRACE_US])}"
    dead = _more_or_fewer((new[DEAD] - old[DEAD]) / days, "dead letters a day")
    amended = _more_or_fewer((new[AMENDED] - old[AMENDED]) / days, "amended windows a day")
    parts = [dead, amended]
    if old[DELAY_MEDIAN_US] is not None and new[DELAY_MEDIAN_US] is not None:
        later = new[DELAY_MEDIAN_US] - old[DELAY_MEDIAN_US]
        parts.append(f"windows {plain(abs(later))} {'later' if later >= 0 else 'sooner'} (median)")
    parts.append(f"room for {new[PEAK_ROWS]:,} rows instead of {old[PEAK_ROWS]:,}")
    return f"{change}: {', '.join(parts)}"


def _more_or_fewer(count: float, what: str) -> str:
    size = f"{abs(count):,.0f}" if abs(count) >= 10 else f"{abs(count):.2g}"  # noqa: PLR2004
    return f"{size} {'fewer' if count < 0 else 'more'} {what}"


_UNITS: Final = ((DAY_US, "d"), (HOUR_US, "h"), (MINUTE_US, "m"), (SECOND_US, "s"), (1000, "ms"))
_SHORT: Final = 2
# Below so many hours minutes are said, below so many minutes seconds.
_FEW: Final = 2
_MANY: Final = 1000


def plain(us: int) -> str:
    """Return a duration as a spec has it if that is short, else in three digits: ``97.6s``."""
    if us < 0:
        return f"-{plain(-us)}"
    exact = format_duration(us)
    if len(exact.rstrip("dhmsu")) <= _SHORT or (us < SECOND_US and not us % 1000):
        return exact
    for unit, name in _UNITS:
        if us >= unit:
            number = us / unit
            if name in {"m", "h"} and number < _FEW:
                continue
            return f"{number:.3g}{name}" if number < _MANY else f"{number:,.0f}{name}"
    return format_duration(us)


def percent(share: float) -> str:
    """Return a share as a percentage with two digits that mean something."""
    return f"{100 * share:.2g} %" if share < 1 else "100 %"
