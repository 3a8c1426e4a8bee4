"""Staging of NDJSON files, against a bare read of the same files by Polars.

``make FOLDER ROWS PERCENT_BROKEN`` writes files; ``ours FOLDER`` and ``bare FOLDER`` read them and
print seconds, on the clock and of the processors, as JSON. Staging is reading, parsing, numbering
and rejecting; it writes nothing here, as the bare read does not.
"""

import json
import sys
import time
from pathlib import Path

import polars as pl

from assets.stores.sources.files import number_on, read_files
from benchmarks.fleet import rows, spec_text
from transforms.spec import load_spec

FILES = 4


def make(folder: Path, number: int, percent_broken: int) -> None:
    """Write the fleet's rows as NDJSON files; so many lines in a hundred are cut short."""
    folder.mkdir(parents=True)
    frame = rows(number).select(
        sensor="key", sampled_at="event_us", received_at="arrival_us", level="level"
    )
    lines = frame.write_ndjson().splitlines()
    for place in range(0, len(lines) * bool(percent_broken), 100 // (percent_broken or 1)):
        lines[place] = lines[place][:-9]
    each = -(-number // FILES)
    for file in range(FILES):
        text = "\n".join(lines[file * each : (file + 1) * each]) + "\n"
        (folder / f"part-{file}.ndjson").write_text(text)


def ours(folder: Path) -> int:
    """Read the files as staging does; the number of rows."""
    spec = load_spec(spec_text(), file="fleet.yaml")
    names = sorted(map(str, folder.glob("*.ndjson")))
    reads = number_on(read_files(spec, names, data_dir=folder))
    return sum(read.staged.height + read.rejected.height for read in reads)


def bare(folder: Path) -> int:
    """Read the files as Polars does; the number of rows."""
    return pl.concat(pl.read_ndjson(path) for path in sorted(folder.glob("*.ndjson"))).height


WORK = {"ours": ours, "bare": bare}


def main() -> None:
    """Make files, or read them."""
    what, folder, *numbers = sys.argv[1:]
    if what == "make":
        make(Path(folder), *map(int, numbers))
        return
    begun, begun_cpu = time.perf_counter(), time.process_time()
    WORK[what](Path(folder))
    seconds = {"wall": time.perf_counter() - begun, "cpu": time.process_time() - begun_cpu}
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
