"""``lowwater ui``: the Dagster UI and its daemon on the embedded instance, stopped together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import typer

from orchestration.embedded import prepare
from orchestration.settings import REPORTS_PORT, REPORTS_URL, Settings

HOST: Final = "127.0.0.1"
MODULE: Final = ("-m", "orchestration.definitions")
FAILED: Final = 4
_PAUSE_S: Final = 0.2
_PATIENCE_S: Final = 20


def command(
    port: Annotated[
        int, typer.Option("--port", help="Where the UI listens, on this machine.")
    ] = 3000,
    reports_port: Annotated[
        int, typer.Option("--reports-port", help="Where the reports are, on this machine.")
    ] = REPORTS_PORT,
) -> int:
    """Show runs, partitions, figures, lineage and reports; run the daemon that backfills need.

    It ends with Ctrl-C, and with it all its processes.
    """
    settings = Settings.from_environment()
    prepare(settings)
    # Links to reports are made by the runs, which take the environment of these processes.
    os.environ.setdefault(REPORTS_URL, f"http://{HOST}:{reports_port}")
    programs = Path(sys.executable).parent
    commands = [
        [str(programs / "dagster-webserver"), "-h", HOST, "-p", str(port), *MODULE],
        [str(programs / "dagster-daemon"), "run", *MODULE],
        [str(programs / "lowwater"), "reports", "--port", str(reports_port)],
    ]
    typer.echo(f"http://{HOST}:{port} (Ctrl-C ends it)", err=True)
    with together(commands) as processes:
        return until_one_ends(processes)


@contextmanager
def together(commands: Sequence[Sequence[str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run programs side by side; all of them end when the block does."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for words in commands:
            # Sessions of their own: Ctrl-C reaches this process alone, which ends them in order.
            processes.append(subprocess.Popen(words, start_new_session=True))  # noqa: S603, PERF401
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a program that was told to stop; one that does not is killed."""
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def until_one_ends(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait for Ctrl-C (0) or for a program that ends by itself (4)."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        while all(process.poll() is None for process in processes):
            time.sleep(_PAUSE_S)
    except KeyboardInterrupt:
        return 0
    return FAILED


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
