"""The state of a stream in words: what is wrong, since when, what to do.

Here belongs the way from verdicts to sentences for someone who was woken up. Numbers and pictures
are elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from expectations.invariants import AUDITS, CATALOGUE, Invariant
from expectations.results import Fault, Verdict, counted


@dataclass(frozen=True)
class Problem:
    """An invariant that does not hold: where it began, how long it goes on, and who is worst.

    ``since`` is the first partition of those in which it fails without a break up to the newest
    failure.
    """

    about: Invariant
    since: str
    newest: str
    partitions: int
    in_a_row: int
    still: bool
    evidence_is_missing: bool
    worst: tuple[Fault, ...]
    violations: int

    @property
    def when(self) -> str:
        """Since when, in words."""
        if self.still:
            how = "the newest" if self.in_a_row == 1 else f"{self.in_a_row:,} partitions so far"
            before = self.partitions - self.in_a_row
            return f"Since {self.since} ({how})" + (f", and in {before:,} before" if before else "")
        if self.partitions == 1:
            return f"In {self.newest} only; later partitions are well"
        return f"In {self.partitions:,} partitions, last in {self.newest}; later ones are well"

    @property
    def found(self) -> str:
        """How much is wrong, in words."""
        return f"{counted(self.violations, 'violation')}."

    @property
    def consequence(self) -> str:
        """What it holds back. On audits nothing builds."""
        if self.about in AUDITS:
            return "The run failed, and held nothing back."
        if self.about.blocking:
            return f"What builds on {self.about.asset} was held back."
        return "Nothing was held back."


@dataclass(frozen=True)
class State:
    """All problems, errors first, and how much was checked."""

    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    judged: int
    newest: str
    judged_at: str

    @property
    def level(self) -> str:
        """``error``, ``warning``, ``good`` or ``unknown``."""
        if not self.judged:
            return "unknown"
        return "error" if self.errors else "warning" if self.warnings else "good"

    @property
    def judged_at_us(self) -> int | None:
        """When the newest verdict was given, in microseconds UTC."""
        if not self.judged_at:
            return None
        at = datetime.fromisoformat(self.judged_at)
        return int(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1_000_000)

    @property
    def headline(self) -> str:
        """The state in one line."""
        if not self.judged:
            return "Nothing has been checked yet"
        if self.errors:
            broken = counted(len(self.errors), "promise")
            return f"{broken} broken: published numbers may be wrong"
        if self.warnings:
            news = counted(len(self.warnings), "piece")
            return f"The numbers can be trusted; {news} of news about the source"
        return "All is well: every promise holds"


def state_of(verdicts: Sequence[Verdict]) -> State:
    """Sum verdicts up."""
    problems = [
        problem
        for invariant in CATALOGUE
        if (problem := _problem(invariant, [v for v in verdicts if v.invariant == invariant.name]))
    ]
    return State(
        tuple(problem for problem in problems if problem.about.severity == "error"),
        tuple(problem for problem in problems if problem.about.severity == "warning"),
        len(verdicts),
        max((verdict.partition for verdict in verdicts), default=""),
        max((verdict.judged_at for verdict in verdicts), default=""),
    )


def _problem(invariant: Invariant, verdicts: Iterable[Verdict]) -> Problem | None:
    listed = sorted(verdicts, key=lambda verdict: verdict.partition)
    failing = [verdict for verdict in listed if not verdict.passed]
    if not failing:
        return None
    began = _in_a_row(listed)
    faults = sorted(_by_subject(failing), key=lambda fault: -fault.violations)
    return Problem(
        invariant,
        began[0].partition,
        failing[-1].partition,
        len(failing),
        len(began),
        still=not listed[-1].passed,
        evidence_is_missing=any(verdict.evidence_is_missing for verdict in failing),
        worst=tuple(faults[:5]),
        violations=sum(verdict.violations for verdict in failing),
    )


def _by_subject(failing: Iterable[Verdict]) -> Iterable[Fault]:
    """Add up the faults of each key or file; what was wrong last is what is said, and where."""
    sums: dict[str, Fault] = {}
    for verdict in failing:
        for fault in verdict.worst:
            before = sums[fault.subject].violations if fault.subject in sums else 0
            detail = f"{verdict.partition}: {fault.detail}"
            sums[fault.subject] = Fault(fault.subject, fault.violations + before, detail)
    return sums.values()


def _in_a_row(listed: Sequence[Verdict]) -> Sequence[Verdict]:
    """The failures without a break of which the newest failure is the last."""
    row: list[Verdict] = []
    is_broken_off = True
    for verdict in listed:
        if not verdict.passed:
            row = [verdict] if is_broken_off else [*row, verdict]
        is_broken_off = verdict.passed
    return row
