"""A whole run of a stream in this process: which partitions, in which order, and what came of it.

Here belongs what ``lowwater run`` does through Dagster: the job over arrival partitions, the job
over the event partitions that have something to reconcile, the advice where it is due;
recorded in the embedded instance. What is printed is in ``summary`` and in the command.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dagster as dg
from dagster._core.errors import DagsterAssetCheckFailedError

from assets.catalogue import Landing, Locks, Progress
from assets.freshness import first_unfinished_of_any, with_data
from assets.grace import is_due
from assets.history import History, Targets
from assets.parity import unproved
from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.lock import StreamLock
from assets.touched import waiting
from assets.tracks import uncompared
from orchestration.definitions import build_defs
from orchestration.embedded import instance_of
from orchestration.jobs import (
    advice_job,
    arrivals_job,
    events_job,
    parity_job,
    report_job,
    tracks_job,
)
from orchestration.logs import FILE, file_logger
from orchestration.ranges import parts, range_tags, stretches
from orchestration.resources import resources_of
from orchestration.settings import Settings
from orchestration.targets import target_of
from orchestration.watcher import Watcher
from transforms.errors import CheckError, SourceError, UsageError
from transforms.spec import StreamSpec
from transforms.spec.fields import parse_instant

# How many stages of each track tell of an arrival partition, beside staging; of an event partition.
TRACK_STAGES: Final = 4
EVENT_STAGES: Final = 2


@dataclass(frozen=True)
class Outcome:
    """What a run did: the partitions that it took, where it wrote its log.

    ``failed`` is the check that ended it; what came before that is done.
    """

    arrivals: Sequence[str]
    events: Sequence[str]
    log: Path
    failed: CheckError | None = None


@dataclass
class Taken:
    """The partitions that a run took up so far."""

    arrivals: Sequence[str] = ()
    events: Sequence[str] = ()


@dataclass(frozen=True)
class Runner:
    """Runs one stream. The resources are those of the assets, shared with what decides on them."""

    settings: Settings
    spec: StreamSpec
    resources: dict[str, Any]
    watcher: Watcher

    @classmethod
    def of(cls, settings: Settings, spec: StreamSpec, watcher: Watcher | None = None) -> "Runner":
        """Return the runner of a stream of this installation. UsageError: it has no target."""
        for part in spec.computed:
            target_of(settings, part)
        watcher = watcher or Watcher()
        progress = Progress(lambda _stage, _partition: watcher.step())
        resources = {**resources_of(settings, told=watcher.rows), "progress": progress}
        return cls(settings, spec, resources, watcher)

    @property
    def lake(self) -> Lake:
        """The lake."""
        lake: Lake = self.resources["lake"]
        return lake

    def run(self, first: str | None = None, last: str | None = None) -> Outcome:
        """Run a range of arrival partitions, then the event partitions that wait, then the advice.

        Without bounds: from the first partition that is unfinished to the last with data.
        """
        stream = self.spec.name
        locks: Locks = self.resources["locks"]
        lock = StreamLock(locks.folder, stream, locks.patience_s, self.watcher.say)
        log = self.settings.logs / f"{stream}-{time.strftime('%Y%m%dT%H%M%S')}.log"
        taken, failed = Taken(), None
        with lock(), self._jobs(log) as jobs:
            try:
                self._take(jobs, taken, first, last)
            except CheckError as error:
                failed = error
            if taken.arrivals or taken.events or failed:
                self._report(jobs)  # it says what is wrong, too
        return Outcome(taken.arrivals, taken.events, log, failed)

    def alerts(self) -> Iterator[str]:
        """Yield what somebody must be told of the targets, as this process met them."""
        targets: Targets = self.resources["targets"]
        for sink in {id(sink): sink for sink in map(targets.sink_of, self.spec.computed)}.values():
            yield from sink.record.figures.alerts()

    def _take(self, jobs: "Jobs", taken: Taken, first: str | None, last: str | None) -> None:
        """Run the arrival partitions, then the event partitions, then what speaks of both."""
        stream, tracks = self.spec.name, len(self.spec.computed)
        taken.arrivals = arrivals = self._arrivals(first, last)
        if arrivals:
            self.watcher.expect("arrivals", (1 + TRACK_STAGES * tracks) * len(arrivals))
            jobs.run_in_parts(arrivals_job(stream), arrivals)
        events = self._events()
        taken.events = [key for stretch in events for key in stretch]
        stages = EVENT_STAGES * tracks + bool(self.spec.tracks)
        self.watcher.expect("events", stages * len(taken.events))
        for stretch in events:
            jobs.run(events_job(stream), stretch)
        if self._advice_is_due():
            self.watcher.say("profiling lateness")
            jobs.run(advice_job(stream))
        self._in_stretches(jobs, "parity", parity_job(stream), self._unproved(), tracks)
        self._in_stretches(jobs, "tracks", tracks_job(stream), self._differences())

    def _in_stretches(
        self,
        jobs: "Jobs",
        title: str,
        job: str,
        found: Sequence[Sequence[str]],
        stages: int = 1,
    ) -> None:
        if found:
            self.watcher.expect(title, stages * sum(map(len, found)))
        for stretch in found:
            jobs.run_in_parts(job, stretch)

    def _report(self, jobs: "Jobs") -> None:
        self.watcher.say("writing the report")
        jobs.run(report_job(self.spec.name))

    @contextlib.contextmanager
    def _jobs(self, log: Path) -> Iterator["Jobs"]:
        """Give the jobs of the stream, recorded in the embedded instance, told of in a file."""
        with instance_of(self.settings) as instance, file_logger(log) as logger:
            definitions = build_defs(
                self.settings,
                specs={self.spec.name: self.spec},
                resources=self.resources,
                loggers={FILE: logger},
            )
            yield Jobs(definitions, instance, (FILE,))

    def _arrivals(self, first: str | None, last: str | None) -> Sequence[str]:
        """Return the arrival partitions to run, next to each other."""
        axis = Axis.of_arrivals(self.spec)
        landing: Landing = self.resources["landing"]
        self.watcher.say("looking for new and changed files")
        files = landing.of(self.spec).survey()
        if not files:
            raise SourceError(
                f"{self.spec.name}: no file matches {self.spec.source.path}"
                f" (relative to {self.settings.home})"
            )
        ready = with_data(self.spec, axis, files, time.time_ns() // 1_000)
        start = partition_of(self.spec, axis, first) if first else None
        end = partition_of(self.spec, axis, last) if last else (ready[-1] if ready else None)
        if start is None and ready:
            start = first_unfinished_of_any(self.spec, self.lake, axis, files, ready)
        if start is None or end is None or axis.position(start) > axis.position(end):
            return ()
        return axis.between(start, end)

    def _advice_is_due(self) -> bool:
        axis = Axis.of_arrivals(self.spec)
        return any(is_due(part, self.lake, axis) for part in self.spec.computed)

    def _unproved(self) -> list[Sequence[str]]:
        """Return the event partitions to prove, in stretches without gaps."""
        return self._of_any_track(unproved)

    def _events(self) -> list[Sequence[str]]:
        """Return the event partitions to reconcile, in stretches without gaps."""
        return self._of_any_track(waiting)

    def _of_any_track(self, found: Callable[[History], list[str]]) -> list[Sequence[str]]:
        events = Axis.of_events(self.spec)
        histories = [History(self.lake, part, events) for part in self.spec.computed]
        keys = {key for history in histories for key in found(history)}
        return list(stretches(events, events.in_order(keys)))

    def _differences(self) -> list[Sequence[str]]:
        """Return the event partitions in which tracks must be compared, in stretches."""
        events = Axis.of_events(self.spec)
        return list(stretches(events, uncompared(self.spec, self.lake, events)))


@dataclass(frozen=True)
class Jobs:
    """Executes jobs in this process and records them in the instance.

    ``loggers`` are those of the definitions that are told of it; Dagster's console if none is.
    """

    definitions: dg.Definitions
    instance: dg.DagsterInstance
    loggers: Sequence[str] = ()

    def run(self, job: str, partitions: Sequence[str] = ()) -> None:
        """Run a job, over a range of partitions if it has any.

        What its assets raise comes through. Raises CheckError if a check that blocks did not pass.
        """
        tags = range_tags(partitions[0], partitions[-1]) if partitions else None
        try:
            self.definitions.resolve_job_def(job).execute_in_process(
                instance=self.instance,
                tags=tags,
                run_config={"loggers": {name: {} for name in self.loggers}},
            )
        except DagsterAssetCheckFailedError as error:
            # Its first line counts them, the others name them.
            named = "; ".join(str(error).splitlines()[1:])
            failed = f"a check of {job} failed, see the quality report or lowwater ui: {named}"
            raise CheckError(failed) from error

    def run_in_parts(self, job: str, partitions: Sequence[str]) -> None:
        """Run a job over a range of any length, in as many runs as Dagster's bookkeeping likes."""
        for part in parts(partitions):
            self.run(job, part)


def partition_of(spec: StreamSpec, axis: Axis, text: str) -> str:
    """Return the arrival partition that a text names: its key, or a time within it.

    Raises UsageError for anything else, and for a time without a partition.
    """
    if text in axis.keys:
        return text
    try:
        instant_us = parse_instant(text, spec.arrival.zone)
    except ValueError as error:
        raise UsageError(f"{text}: no partition of {spec.name}, nor {error}") from error
    if not axis.keys:
        raise UsageError(
            f"{text}: {spec.name} has no partition yet, it starts {spec.arrival.start}"
        )
    first, last = axis.keys[0], axis.keys[-1]
    if not axis.bounds(first).start_us <= instant_us < axis.bounds(last).end_us:
        raise UsageError(f"{text}: {spec.name} has partitions from {first} to {last}")
    return axis.key_of(instant_us)
