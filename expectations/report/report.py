"""The report of a stream: its page and Data Docs, from verdicts and from what is stored."""

from pathlib import Path

from expectations.report.docs import build_docs
from expectations.report.figures import figures, has_rows
from expectations.report.page import page
from expectations.report.state import State, state_of
from expectations.results import Results
from expectations.stored import Stored


def build_report(arrivals: Stored, events: Stored, folder: Path, file: Path) -> State:
    """Write the page of a stream to ``file`` and its Data Docs below ``folder``.

    ``arrivals`` and ``events`` judge the partitions that are shown. Returns the state in words.
    """
    verdicts = Results(folder).all()
    state = state_of(verdicts)
    shown = figures(arrivals, events) if has_rows(arrivals) else None
    docs = build_docs(folder).relative_to(folder).as_posix()
    html = page(arrivals.spec, state, shown, verdicts, [("Great Expectations Data Docs", docs)])
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(html, encoding="utf-8")
    draft.replace(file)
    return state
