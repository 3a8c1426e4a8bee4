"""Make one row for each gateway reception of the Saint-Eynard archive, a plain stream of telemetry.

The archive has one line for each frame, with a list of the gateways that heard it, and lines of
another kind (status reports) without such a list. A gateway may stand twice in one list, so a
reception's place in its frame is part of its identity.

Use: ``python samples/real_logs/receptions.py OUT.ndjson.gz ARCHIVE.ndjson.gz...``
"""

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from heapq import merge
from pathlib import Path
from typing import Any


def read_frames(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of one archive file, which stand in order of ``_timestamp``."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def receptions(frame: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One row for each gateway that heard the frame; none for a status report."""
    for place, heard in enumerate(frame.get("rxInfo") or ()):
        yield {
            "gateway": heard["gatewayID"],
            "sensor": frame["devEUI"],
            "frame": frame.get("fCnt"),
            "reception": place,
            "gateway_time": heard.get("time"),
            "archived_ms": frame["_timestamp"],
            "rssi": heard.get("rssi"),
            "snr": heard.get("loRaSNR"),
        }


def write_receptions(archives: Iterable[Path], out: Path) -> int:
    """Merge the archives by arrival and write their receptions; gives the number of rows."""
    frames = merge(*map(read_frames, archives), key=lambda frame: frame["_timestamp"])
    rows = [json.dumps(row) + "\n" for frame in frames for row in receptions(frame)]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(gzip.compress("".join(rows).encode(), mtime=0))
    return len(rows)


if __name__ == "__main__":
    target, *sources = map(Path, sys.argv[1:])
    print(f"{write_receptions(sources, target)} receptions in {target}")  # noqa: T201
