"""Time and peak memory of a piece of work, each in a process of its own. Knows no workload.

A peak is that of the resident set while the work runs, sampled from outside of it: ``ru_maxrss``
never falls, so two pieces of work in one process cannot be told apart by it.
"""

import json
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Measured:
    """Seconds of each part (as the work itself reported them) and the peak in MiB."""

    parts: dict[str, float]
    peak_mib: float

    @property
    def seconds(self) -> float:
        """The whole, in seconds."""
        return sum(self.parts.values())


def run_apart(module: str, *arguments: str) -> Measured:
    """Run ``python -m module arguments``; its last line of output is JSON, seconds by part.

    Raises:
        subprocess.CalledProcessError: the work failed.
    """
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = PeakOfProcess(process.pid)
        output, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Measured(json.loads(output.splitlines()[-1]), peak.stop())


class PeakOfProcess:
    """Samples the resident set of a process every five milliseconds until it ends."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._peak = 0
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        try:
            while True:
                self._peak = max(self._peak, self._process.memory_info().rss)
                time.sleep(0.005)
        except psutil.NoSuchProcess:
            return

    def stop(self) -> float:
        """The peak in MiB."""
        self._thread.join(timeout=1)
        return self._peak / 2**20


def median_of(runs: list[Measured]) -> Measured:
    """The run whose time is the median."""
    middle = statistics.median_low([run.seconds for run in runs])
    return next(run for run in runs if run.seconds == middle)
