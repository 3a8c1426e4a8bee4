"""The advice on every profile of a stream, and the curve as a table that people read.

Here belongs putting the advice of all profiles together, a what-if among it, and choosing which
points of a curve are worth a line. What a medium makes of the cells (text, Markdown) is its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from transforms.grace.advice import ALLOWED_BEHIND, Advice, advise, percent, plain
from transforms.grace.sweep import CURVE, GRACE_US, sweep_of
from transforms.lateness.arrival_log import Log
from transforms.schemas import PROFILE
from transforms.spec import DEFAULT, StreamSpec

ADVICE_SCHEMA: Final = pl.Schema(
    {
        PROFILE: pl.String(),
        **CURVE,
        **dict.fromkeys(("is_in_force", "is_knee", "is_advised"), pl.Boolean()),
    }
)
LINES: Final = 16
HEADER: Final = (
    *("grace", "behind", "dead letters", "amended", "first late"),
    *("delay p50", "p95", "peak rows", ""),
)


@dataclass(frozen=True)
class Report:
    """The advice for each profile that rows use, and the profiles that none does."""

    spec: StreamSpec
    rows: int
    advices: Sequence[Advice]
    unused: Sequence[str]

    def as_table(self) -> pl.DataFrame:
        """Return the curves of all profiles, with what each point is."""
        curves = [
            advice.curve.select(
                pl.lit(advice.profile).alias(PROFILE),
                pl.all(),
                (pl.col(GRACE_US) == advice.in_force[GRACE_US]).alias("is_in_force"),
                (pl.col(GRACE_US) == pl.lit(advice.knee_us, pl.Int64))
                .fill_null(value=False)
                .alias("is_knee"),
                (pl.col(GRACE_US) == advice.advised[GRACE_US]).alias("is_advised"),
            )
            for advice in self.advices
        ]
        return pl.concat([ADVICE_SCHEMA.to_frame(), *curves])

    def as_record(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "stream": self.spec.name,
            "rows": self.rows,
            "profiles": [advice.as_record() for advice in self.advices],
            "unused_profiles": list(self.unused),
        }


def report(
    spec: StreamSpec,
    log: Log,
    *,
    until_us: int | None = None,
    tried: Mapping[str, int] | None = None,
    allowed: float = ALLOWED_BEHIND,
) -> Report:
    """Advise for every profile; ``tried`` are graces to compare with those in force."""
    other = with_graces(spec, tried or {})
    advices, unused = list[Advice](), list[str]()
    for profile in spec.profiles.named:
        sweep = sweep_of(spec, log, profile, until_us)
        what_if = sweep_of(other, log, profile, until_us) if profile in (tried or {}) else None
        advice = advise(sweep, tried=what_if, allowed=allowed)
        if advice is None:
            unused.append(profile)
        else:
            advices.append(advice)
    return Report(spec, log.size, advices, unused)


def with_graces(spec: StreamSpec, graces: Mapping[str, int]) -> StreamSpec:
    """Return the spec with other graces for some profiles."""
    named = {
        name: profile.model_copy(update={"grace_us": graces.get(name, profile.grace_us)})
        for name, profile in spec.profiles.named.items()
    }
    default = named.pop(DEFAULT)
    profiles = spec.profiles.model_copy(update={DEFAULT: default, **named})
    return spec.model_copy(update={"profiles": profiles})


def shown(advice: Advice) -> Sequence[dict[str, Any]]:
    """Return the points worth a line: those with a name, and some between; a what-if with them."""
    named = {advice.in_force["grace_us"], advice.advised["grace_us"], advice.knee_us}
    points = advice.curve.to_dicts()
    every = max(1, -(-len(points) // LINES))
    kept = [p for i, p in enumerate(points) if i % every == 0 or p["grace_us"] in named]
    known = {point["grace_us"] for point in kept}
    if advice.tried is not None and advice.tried["grace_us"] not in known:
        kept.append(advice.tried)
    return sorted(kept, key=lambda point: int(point["grace_us"]))


def cells(advice: Advice, point: dict[str, Any]) -> tuple[str, ...]:
    """Give one line of the table."""
    delays = (point["delay_median_us"], point["delay_p95_us"])
    return (
        plain(point["grace_us"]),
        percent(point["behind_fraction"]),
        f"{point['dead_letters']:,}",
        f"{point['windows_amended']:,}",
        f"{point['windows_first_by_late_rows']:,}",
        *("-" if delay is None else plain(delay) for delay in delays),
        f"{point['peak_rows']:,}",
        names_of(advice, point["grace_us"]),
    )


def names_of(advice: Advice, grace_us: int) -> str:
    """Return what a grace is: the one in force, the knee, the advised one, the tried one."""
    tried = None if advice.tried is None else advice.tried["grace_us"]
    names = {
        "in force": advice.in_force["grace_us"],
        "knee": advice.knee_us,
        "advised": advice.advised["grace_us"],
        "tried": tried,
    }
    return ", ".join(name for name, grace in names.items() if grace == grace_us)
