"""The advice on grace for a stream, from the lake or from files given by hand.

Here belongs where the arrivals come from and how a what-if changes a spec. How it is shown is in
``orchestration.commands.grace``; what is computed is in ``transforms.grace`` and its neighbours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from assets.arrivals import stored_arrivals
from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.sources.files import number_on, read_files
from assets.stores.tables import EVENT_TABLES
from orchestration.settings import Settings
from transforms.arrival_log import Log, read_log
from transforms.durations import parse_duration
from transforms.errors import UsageError
from transforms.grace import sweep_of
from transforms.grace_advice import Advice, advise
from transforms.lateness import look_alikes
from transforms.lateness_rows import lateness_rows
from transforms.schemas import ARRIVAL_US, SEQ
from transforms.spec import DEFAULT, StreamSpec


@dataclass(frozen=True)
class Report:
    """The advice for each profile that rows use, and what else a person should know."""

    spec: StreamSpec
    rows: int
    advices: Sequence[Advice]
    unused: Sequence[str]
    look_alikes: pl.DataFrame

    def as_record(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "stream": self.spec.name,
            "rows": self.rows,
            "profiles": [advice.as_record() for advice in self.advices],
            "unused_profiles": list(self.unused),
            "look_alikes": self.look_alikes.to_dicts(),
        }


def report(
    spec: StreamSpec,
    log: Log,
    *,
    until_us: int | None = None,
    tried: Mapping[str, int] | None = None,
    allowed: float,
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
    alike = look_alikes(lateness_rows(log, tuple(spec.profiles.named)))
    return Report(spec, log.size, advices, unused, alike)


def with_graces(spec: StreamSpec, graces: Mapping[str, int]) -> StreamSpec:
    """Return the spec with other graces for some profiles."""
    named = {
        name: profile.model_copy(update={"grace_us": graces.get(name, profile.grace_us)})
        for name, profile in spec.profiles.named.items()
    }
    default = named.pop(DEFAULT)
    profiles = spec.profiles.model_copy(update={DEFAULT: default, **named})
    return spec.model_copy(update={"profiles": profiles})


def parse_graces(spec: StreamSpec, texts: Sequence[str]) -> dict[str, int]:
    """Read ``profile=duration`` texts; UsageError for what is none or names no profile."""
    graces = dict[str, int]()
    for text in texts:
        profile, _, duration = text.partition("=")
        if profile not in spec.profiles.named:
            known = ", ".join(spec.profiles.named)
            raise UsageError(f"--set {text}: {spec.name} has no profile {profile}; known: {known}")
        try:
            graces[profile] = parse_duration(duration)
        except ValueError as error:
            raise UsageError(f"--set {text}: allowed is profile={error}") from error
    return graces


def log_of_lake(settings: Settings, spec: StreamSpec) -> tuple[Log, int]:
    """Return the stored arrivals, and the time up to which they are complete."""
    lake = Lake(settings.lake, event_tables=EVENT_TABLES)
    arrivals = stored_arrivals(spec, lake, Axis.of_arrivals(spec))
    return arrivals.log, arrivals.until_us


def log_of_files(spec: StreamSpec, inputs: Sequence[str]) -> Log:
    """Return the arrivals that files hold, in the order given, as a replay reads them."""
    reads = list(number_on(read_files(spec, inputs, data_dir=Path())))
    staged = pl.concat([read.staged for read in reads])
    return read_log(spec, staged.sort(ARRIVAL_US, SEQ))
