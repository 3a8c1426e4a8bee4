"""The one form of evidence, and the small texts of SQL that many questions share.

Here belongs what every evidence table looks like. What is asked is in the module of its stage.
"""

from collections.abc import Iterable
from typing import Final

import polars as pl

from expectations.stored import Opened, literal, quoted
from transforms.schemas import COUNTED_DEAD_LETTER_REASONS
from transforms.spec import StreamSpec

# A row for each subject (a key, a file) of a partition: how much was looked at, how much is wrong.
EVIDENCE: Final = pl.Schema(
    {
        "partition": pl.String(),
        "subject": pl.String(),
        "examined": pl.Int64(),
        "violations": pl.Int64(),
        "detail": pl.String(),
    }
)
# Instants beyond it are shown as a number.
_YEAR_9999_US: Final = 253_370_764_800_000_000
_MINUTE_US: Final = 60_000_000
GRAIN_US: Final = {"15m": 15 * _MINUTE_US, "hour": 60 * _MINUTE_US, "day": 1440 * _MINUTE_US}
COUNTED: Final = f"reason in ({', '.join(literal(name) for name in COUNTED_DEAD_LETTER_REASONS)})"


def evidence(store: Opened, query: str) -> pl.DataFrame:
    """Return the answer to a question as evidence; it names its columns in their order."""
    answer = store.ask(query)
    return answer.rename(dict(zip(answer.columns, EVIDENCE, strict=True))).cast(EVIDENCE)


def columns(names: Iterable[str], prefix: str = "") -> str:
    """Return names as a list of SQL identifiers."""
    dot = f"{prefix}." if prefix else ""
    return ", ".join(f"{dot}{quoted(name)}" for name in names)


def instant(us: str) -> str:
    """Return an SQL expression that spells an instant given in microseconds."""
    text = f"strftime(make_timestamp({us}), '%Y-%m-%d %H:%M:%S.%fZ')"
    return f"(case when abs({us}) < {_YEAR_9999_US} then {text} else {us} || ' us' end)"


def first_window(wrong: str) -> str:
    """Return an SQL expression, per group, that names the earliest window that is wrong."""
    start = f"min(window_start_us) filter ({wrong})"
    return f"arg_min(\"window\", window_start_us) filter ({wrong}) || ' from ' || {instant(start)}"


def counts(wrong: str, said: str) -> str:
    """Return the last three columns of evidence, per group: all rows, wrong ones, what is said."""
    return (
        f"count(*), count(*) filter ({wrong}),"
        f" case when count(*) filter ({wrong}) > 0 then {said} end"
    )


def register_profiles(store: Opened) -> None:
    """Register the numbers of every profile as ``profiles``; no idle timeout is null."""
    named = store.spec.profiles.named
    rows = [(name, p.grace_us, p.idle_timeout_us, p.future_skew_us) for name, p in named.items()]
    schema = {
        "profile": pl.String,
        "grace_us": pl.Int64,
        "idle_us": pl.Int64,
        "skew_us": pl.Int64,
    }
    store.connection.register("profiles", pl.DataFrame(rows, schema=schema, orient="row"))


def profile_of(spec: StreamSpec, row: str) -> str:
    """Return an SQL expression for the declared profile that serves a row."""
    if spec.profiles.by is not None:
        return f"coalesce({row}.profile, 'default')"
    if not spec.profiles.key_map:
        return "'default'"
    cases = " ".join(
        f"when {literal(key)} then {literal(name)}" for key, name in spec.profiles.key_map.items()
    )
    return f"case {row}.key {cases} else 'default' end"
