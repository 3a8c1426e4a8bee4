"""The catalogue of invariants, its document, and what loading it costs."""

import subprocess
import sys
from pathlib import Path

from plain_windows import stream

from assets.stores.tables import frame_schema
from expectations.invariants import CATALOGUE, as_markdown
from expectations.stored import table_schemas
from expectations.suites.stages import STAGES

ROOT = Path(__file__).parents[2]


def test_the_document_is_made_from_the_catalogue() -> None:
    written = (ROOT / "docs" / "invariants.md").read_text()
    assert written == as_markdown(), "run: python -m expectations.invariants > docs/invariants.md"


def test_names_are_unique_and_every_sentence_is_one() -> None:
    names = [invariant.name for invariant in CATALOGUE]
    assert len(set(names)) == len(names)
    assert all(i.sentence.endswith(".") and i.why.endswith(".") for i in CATALOGUE)


def test_every_invariant_is_judged_in_one_stage_of_one_axis() -> None:
    judged = [invariant for stage in STAGES.values() for invariant in stage]
    assert sorted(i.name for i in judged) == sorted(i.name for i in CATALOGUE)
    assert all(len({i.axis for i in stage}) == 1 for stage in STAGES.values())


def test_news_blocks_nothing() -> None:
    assert not any(i.blocking for i in CATALOGUE if i.severity == "warning")


def test_loading_what_the_code_server_loads_imports_no_great_expectations() -> None:
    code = (
        "import sys, assets.checks, expectations.run, expectations.suites.judge;"
        "sys.exit(any(name in sys.modules for name in ('great_expectations', 'pandas', 'altair')))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_what_evidence_reads_of_a_table_is_what_is_stored_there() -> None:
    spec = stream({"name": "hour", "every": "1h"})
    for table, read in table_schemas(spec).items():
        kept = frame_schema(spec, table)
        assert dict(read).items() <= dict(kept).items(), table
