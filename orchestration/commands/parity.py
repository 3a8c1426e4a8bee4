"""``lowwater parity``: proves that a target holds what was published, or any two tables the same.

Exit code 0 says that every row is equal and nothing was left unlooked at; 1 that something differs
or could not be judged. Here belong the options and the words for people; the proof is
``assets.stores.parity``.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from assets.stores.counting import RowCount
from assets.stores.parity.engine import prove
from assets.stores.parity.ledger import FileLedger
from assets.stores.parity.options import Options, Wanted
from assets.stores.parity.places import sides_at
from assets.stores.parity.repair import repair
from assets.stores.parity.side import READING, Reading, Side
from orchestration.commands.progress import progress_bar
from orchestration.commands.result import AsJson, show
from orchestration.settings import Settings
from orchestration.specs import load_specs
from orchestration.targets import target_of
from orchestration.watcher import Watcher
from transforms.errors import UsageError
from transforms.parity.canonical import ColumnType
from transforms.parity.contract import Wish
from transforms.parity.proof import Proof
from transforms.parity.waivers import Waiver, read_waivers

_PLACE = "postgresql://host/db/table, env:DSN_VARIABLE/table, file.duckdb/table or files.parquet."
Stream = Annotated[
    str | None, typer.Argument(help="The stream whose target is proved; or name two tables.")
]
Source = Annotated[str | None, typer.Option("--source", help=f"What should be there: {_PLACE}")]
Target = Annotated[str | None, typer.Option("--target", help=f"What is there: {_PLACE}")]
Key = Annotated[
    list[str] | None, typer.Option("--key", help="A key column; with ? at its end it may be null.")
]
LeaveOut = Annotated[list[str] | None, typer.Option("--leave-out", help="A column not to compare.")]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="amount=decimal(18,4), where no side declares the digits."),
]
PartitionBy = Annotated[
    str | None, typer.Option("--partition", help="Read the values of this column one by one.")
]
Waivers = Annotated[
    Path | None, typer.Option("--waivers", help="YAML list: column, cause, limit, reason, until.")
]
Evidence = Annotated[
    Path | None, typer.Option("--evidence", help="Write everything to this JSON file.")
]
Resume = Annotated[
    Path | None, typer.Option("--resume", help="Remember partitions here, skip those read before.")
]
Lag = Annotated[
    float, typer.Option("--lag", min=0, help="Seconds until a second look decides differences.")
]
Repair = Annotated[bool, typer.Option("--repair", help="Bring the target up to the source.")]
Approve = Annotated[
    int | None, typer.Option("--approve-deletes", help="So many rows may be removed, exactly.")
]
PushDown = Annotated[
    bool, typer.Option("--push-down", help="Let PostgreSQL make the sums: for a slow wire.")
]
Memory = Annotated[int, typer.Option("--memory", min=64, help="MiB for the sums of each side.")]


def command(
    stream: Stream = None,
    source: Source = None,
    target: Target = None,
    key: Key = None,
    *,
    leave_out: LeaveOut = None,
    types: Types = None,
    partition: PartitionBy = None,
    waivers: Waivers = None,
    evidence: Evidence = None,
    resume: Resume = None,
    lag: Lag = 0.0,
    approve_deletes: Approve = None,
    memory: Memory = READING.memory_mib,
    mend: Repair = False,
    push_down: PushDown = False,
    as_json: AsJson = False,
) -> int:
    """Prove that a target holds what its stream published, or that two tables are the same.

    Bit for bit; shows what differs, repairs it when asked. Exit code 1: something differs.
    """
    _refuse_unused(mend=mend, resume=resume, approve_deletes=approve_deletes)
    if evidence is not None and not evidence.parent.is_dir():
        raise UsageError(f"{evidence}: there is no folder {evidence.parent}")
    options = Options(datetime.now(UTC).date(), partition, _waivers(waivers), lag)
    how = Reading(push_down, memory)
    if stream is not None:
        said = {"--source": source, "--target": target, "--key": key}
        less = {"--leave-out": leave_out, "--type": types, "--partition": partition}
        _refuse_said(stream, said | less)
        wanted = Wanted(options, how, resume, mend, approve_deletes)
        with progress_bar() as watcher:
            proof = _of_stream(stream, wanted, watcher)
    else:
        both = sides_at(_both(source, target, key), os.environ, how)
        ledger = FileLedger(resume, *(side.label for side in both)) if resume else None
        wish = _wish(key or (), leave_out or (), types or ())
        kept = replace(options, ledger=ledger)
        with progress_bar() as watcher:
            proof = _of_tables(both, wish, kept, watcher, approve_deletes, mend=mend)
    show(proof.summary(), lines(proof), as_json=as_json)
    if evidence is not None:
        _write(evidence, proof)
    return 0 if proof.holds() else 1


def _write(evidence: Path, proof: Proof) -> None:
    try:
        evidence.write_text(json.dumps(proof.evidence()), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{evidence}: cannot be written: {error.strerror}") from error


def _refuse_said(stream: str, given: Mapping[str, object]) -> None:
    """Raise UsageError for options about what a stream says itself."""
    unused = [option for option, value in given.items() if value]
    if unused:
        raise UsageError(
            f"{stream} says what is compared: leave out {', '.join(unused)}, or the stream"
        )


def _refuse_unused(*, mend: bool, resume: Path | None, approve_deletes: int | None) -> None:
    """Raise UsageError for options that would be without effect."""
    if approve_deletes is not None and not mend:
        raise UsageError("--approve-deletes is for --repair: without it nothing is removed")
    if resume is not None and mend:
        raise UsageError("--resume: a repair reads everything anew; leave out one of the two")


def _both(source: str | None, target: str | None, key: Sequence[str] | None) -> tuple[str, str]:
    if source is None or target is None or not key:
        raise UsageError("name a stream, or two tables with --source, --target and --key")
    return source, target


def _of_tables(
    both: Sequence[Side],
    wish: Wish,
    options: Options,
    watcher: Watcher,
    approved: int | None,
    *,
    mend: bool,
) -> Proof:
    source, target = both
    with source, target:
        watcher.say("looking at both tables")
        about = [source.rows_about(), target.rows_about()]
        count = RowCount(watcher.rows, "proving", sum(about) if all(about) else 0)
        proof = prove(source, target, wish, replace(options, told=count.add))
        return repair(source, target, proof, options, approved) if mend else proof


def _of_stream(name: str, wanted: Wanted, watcher: Watcher) -> Proof:
    settings = Settings.from_environment()
    spec = load_specs(settings.streams).computed(name)
    target_of(settings, spec)
    # Dagster takes seconds to import; a wrong name need not wait for it.
    from assets.parity import prove_stream  # noqa: PLC0415
    from orchestration.resources import resources_of  # noqa: PLC0415

    watcher.say(f"proving the target of {name}")
    return prove_stream(spec, resources_of(settings, told=watcher.rows), wanted)


def _wish(key: Sequence[str], left_out: Sequence[str], types: Sequence[str]) -> Wish:
    return Wish(
        key=[name.removesuffix("?") for name in key],
        nullable=[name.removesuffix("?") for name in key if name.endswith("?")],
        left_out=left_out,
        types=dict(map(_type, types)),
    )


def _type(text: str) -> tuple[str, ColumnType]:
    name, _, kind = text.rpartition("=")
    try:
        return name, ColumnType.parse(kind)
    except ValueError as error:
        raise UsageError(f"--type {text}: {error}") from error


def _waivers(file: Path | None) -> tuple[Waiver, ...]:
    if file is None:
        return ()
    try:
        return read_waivers(file.read_text(encoding="utf-8"), file=str(file))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error


def lines(proof: Proof) -> Iterator[str]:
    """Show a proof to people."""
    summary = proof.summary()
    yield from (f"REFUSED: {reason}" for reason in proof.refused)
    for finding in summary["findings"]:
        yield from finding_lines(finding)
    yield from (f"not looked at: {gap}" for gap in summary["amber"])
    counted = [f"{verdict} {count:,}" for verdict, count in summary["counts"].items() if count]
    yield ", ".join(counted) or "EQUAL 0"
    for side in ("source", "target"):
        yield f"{side}: {summary['rows'][side]:,} rows, root {summary['roots'][side]}"
    yield from plan_lines(summary)
    yield f"{summary['verdict']}: {'proved' if summary['holds'] else 'not proved'}"


def finding_lines(finding: dict[str, Any]) -> Iterator[str]:
    """One finding, two examples, and what would settle it."""
    about = " ".join(filter(None, (finding["verdict"], finding["column"], finding["cause"])))
    yield f"{about}: {finding['count']:,}{' (waived)' if finding['waived'] else ''}"
    for sample in finding["samples"][:2]:
        yield "  " + "; ".join(f"{name} {value}" for name, value in sample.items())
    if not finding["waived"]:
        yield f"  to settle it: {finding['settle']}"


def plan_lines(summary: dict[str, Any]) -> Iterator[str]:
    """What a repair did, or would do."""
    for word, plan in (("repaired", summary["repaired"]), ("a repair would do", summary["plan"])):
        done = ", ".join(f"{count:,} {what}" for what, count in plan.items() if count)
        if done:
            yield f"{word}: {done}"
