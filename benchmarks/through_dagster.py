"""The whole run through Dagster, from NDJSON files to the target, start-up apart.

``python -m benchmarks.through_dagster HOME ROWS`` makes a stream in HOME, runs it as ``lowwater
run`` does, and prints seconds by part as JSON.
"""

import json
import sys
import time
from pathlib import Path

from benchmarks.fleet import spec_text
from benchmarks.staging import make


def prepare(home: Path, rows: int) -> None:
    """Write the stream's spec and its landing files."""
    (home / "streams").mkdir(parents=True)
    (home / "streams" / "fleet.yaml").write_text(spec_text())
    make(home / "landing", rows, 0)


def main() -> None:
    """Prepare, start, run."""
    home, rows = Path(sys.argv[1]) / "through_dagster", int(sys.argv[2])
    prepare(home, rows)
    begun = time.perf_counter()
    # The imports are a part of what is measured.
    from orchestration.run import Runner  # noqa: PLC0415
    from orchestration.settings import Settings  # noqa: PLC0415
    from orchestration.specs import load_specs  # noqa: PLC0415

    settings = Settings.under(home)
    spec = load_specs(settings.streams).stream("fleet")
    runner = Runner.of(settings, spec)
    started = time.perf_counter()
    runner.run(None, None)
    seconds = {"start-up": started - begun, "run": time.perf_counter() - started}
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
