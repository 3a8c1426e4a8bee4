"""Waivers: differences that someone has accepted, for a reason and until a day.

A waiver covers one column and one cause up to a limit of values. Here belong their form and what
they cover; that waived values are still counted and shown is ``parity.proof``.
"""

from collections.abc import Collection, Iterable
from datetime import date

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from transforms.errors import UsageError
from transforms.parity.verdict import Mark, Tally, Verdict

NOT_COMPARED = "column-not-compared"


class Waiver(BaseModel):
    """One accepted difference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str
    cause: str
    limit: int = Field(ge=0)
    reason: str = Field(min_length=1)
    until: date

    def covers(self, column: str, cause: str, count: int, today: date) -> bool:
        """Whether it holds today, for so many."""
        same = (self.column, self.cause) == (column, cause)
        return same and count <= self.limit and today <= self.until


def read_waivers(text: str, *, file: str) -> tuple[Waiver, ...]:
    """From a YAML list; ``UsageError`` names every mistake."""
    try:
        return tuple(TypeAdapter(list[Waiver]).validate_python(yaml.safe_load(text) or []))
    except (yaml.YAMLError, ValidationError) as error:
        raise UsageError(f"{file}: {_one_line(error)}") from error


def _one_line(error: yaml.YAMLError | ValidationError) -> str:
    if isinstance(error, ValidationError):
        mistakes = (
            f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in error.errors()
        )
        return "; ".join(mistakes)
    return " ".join(str(error).split())


def waived_marks(tally: Tally, waivers: Collection[Waiver], today: date) -> frozenset[Mark]:
    """The findings of changed values that a waiver covers; nothing else can be waived."""
    return frozenset(
        mark
        for mark, finding in tally.findings.items()
        if mark.verdict is Verdict.CHANGED
        and any(w.covers(mark.column, mark.cause, finding.count, today) for w in waivers)
    )


def uncovered(columns: Iterable[str], waivers: Collection[Waiver], today: date) -> list[str]:
    """Columns that nobody compares, without a waiver of cause ``NOT_COMPARED``."""
    return [
        column
        for column in columns
        if not any(w.covers(column, NOT_COMPARED, 0, today) for w in waivers)
    ]


def settling_line(mark: Mark, count: int) -> str:
    """The line that would settle a finding: a waiver, where it is one that can be waived."""
    if mark.verdict is Verdict.CHANGED:
        return (
            f"{{column: {mark.column}, cause: {mark.cause}, limit: {count},"
            " reason: ..., until: YYYY-MM-DD}"
        )
    if mark.verdict is Verdict.DUPLICATE:
        return "a key must name one row: declare more key columns, or remove the surplus"
    return "--repair brings the target up to the source"
