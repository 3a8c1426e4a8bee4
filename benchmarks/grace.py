"""What a sweep costs against a single pass over the same rows.

``python -m benchmarks.grace [ROWS]`` makes the fleet of the headline benchmark (10,000 keys, three
kinds of lateness), reorders it and makes its windows once, then sweeps 50 graces over it, and
prints both and their ratio. A sweep may cost as much as five passes.
"""

import sys
import time

import numpy as np

from benchmarks.fleet import rows, spec_text
from transforms import schemas
from transforms.durations import HOUR_US, SECOND_US
from transforms.grace.sweep import sweep_of
from transforms.lateness.arrival_log import read_log
from transforms.reorder import advance, empty_state
from transforms.spec import load_spec
from transforms.windows import counted_rows, first_publications

ROWS = 10_000_000
CANDIDATES = 50
PASSES_ALLOWED = 5


def main() -> None:
    """Measure one pass and one sweep, in this order, and print seconds."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    spec = load_spec(spec_text(), file="fleet.yaml")
    staged = rows(number)
    begun = time.perf_counter()
    outcome = advance(spec, staged, empty_state(spec), schemas.row_schema(spec).to_frame(), None)
    reordered = time.perf_counter() - begun
    counted = counted_rows(outcome.ordered, outcome.dead_letters)
    first_publications(spec, counted, None, outcome.state.watermarks)
    one_pass = time.perf_counter() - begun
    del outcome, counted
    begun = time.perf_counter()
    sweep = sweep_of(spec, read_log(spec, staged), "default")
    sorted_once = time.perf_counter() - begun
    graces = [int(grace) for grace in np.geomspace(SECOND_US, HOUR_US, CANDIDATES)]
    sweep.curve(graces)
    swept = time.perf_counter() - begun
    parts = f"reorder {reordered:.1f}, windows {one_pass - reordered:.1f}"
    print(f"{number:,} rows, {len(graces)} candidates")
    print(f"one pass   {one_pass:6.1f} s ({parts})")
    print(f"the sweep  {swept:6.1f} s (of it the log, sorted once, {sorted_once:.1f})")
    print(f"ratio      {swept / one_pass:6.1f} (allowed: {PASSES_ALLOWED})")


if __name__ == "__main__":
    main()
