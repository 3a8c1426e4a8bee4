"""Judging evidence with Great Expectations, and keeping what it found.

Here belongs all that touches the library. It takes six seconds to import, so it is imported inside
functions, and never where the code server loads. The context is ephemeral; on disk are only the
validation results, and the Data Docs when they are built.
"""
# ruff: noqa: PLC0415 (see above)

import logging
import warnings
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from expectations.invariants import Invariant

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuite
    from great_expectations.core.expectation_validation_result import (
        ExpectationSuiteValidationResult,
        ExpectationValidationResult,
    )
    from great_expectations.data_context.data_context.ephemeral_data_context import (
        EphemeralDataContext,
    )

PARTITION: Final = "partition"
_EVIDENCE_IS_THERE: Final = "Where there are rows there is evidence."
EVIDENCE_IS_MISSING: Final = "evidence of {} is missing"
VALIDATIONS: Final = "validations"
DOCS: Final = "data_docs"


def judge(
    folder: Path, stage: str, invariants: Sequence[Invariant], summary: pl.DataFrame, now: datetime
) -> dict[str, set[str]]:
    """Return the partitions that fail, by column of ``summary``; the validation is kept.

    ``summary`` has a row for each ``partition``; for each invariant a column of its name with the
    number of violations, and one that is 1 where evidence is missing.
    """
    context = context_of(folder)
    result = _validate(context, _suite(stage, invariants), summary, now)
    return {_column(found): _failing(found) for found in result.results}


def _load() -> None:
    """Import the library; that it imports what is deprecated is not for us to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import great_expectations as _  # noqa: F401
    logging.getLogger("great_expectations").setLevel(logging.WARNING)


def context_of(folder: Path) -> "EphemeralDataContext":
    """Return a context that keeps validation results, and Data Docs, under ``folder``."""
    _load()
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    defaults = InMemoryStoreBackendDefaults()
    config = DataContextConfig(
        store_backend_defaults=defaults,
        stores={
            **defaults.stores,
            defaults.validation_results_store_name: {
                "class_name": "ValidationResultsStore",
                "store_backend": _files(folder / VALIDATIONS),
            },
        },
        data_docs_sites={
            DOCS: {
                "class_name": "SiteBuilder",
                "show_how_to_buttons": False,
                "store_backend": _files(folder / DOCS),
                "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            }
        },
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _files(folder: Path) -> dict[str, Any]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)}


def _suite(stage: str, invariants: Sequence[Invariant]) -> "ExpectationSuite":
    """Return the suite of a stage: no violations of any invariant, and evidence where rows are."""
    import great_expectations as gx
    from great_expectations.expectations.core.expect_column_values_to_be_between import (
        ExpectColumnValuesToBeBetween,
    )
    from great_expectations.expectations.metadata_types import FailureSeverity

    severities = {"error": FailureSeverity.CRITICAL, "warning": FailureSeverity.WARNING}
    expectations = [
        ExpectColumnValuesToBeBetween(
            column=column,
            min_value=0,
            max_value=0,
            description=sentence,
            notes=f"{invariant.why} {invariant.remedy}",
            severity=severities[invariant.severity],
            meta={"invariant": invariant.name, "asset": invariant.asset},
        )
        for invariant in invariants
        for column, sentence in (
            (invariant.name, invariant.sentence),
            (EVIDENCE_IS_MISSING.format(invariant.name), _EVIDENCE_IS_THERE),
        )
    ]
    return gx.ExpectationSuite(name=stage, expectations=expectations)


def _validate(
    context: "EphemeralDataContext", suite: "ExpectationSuite", summary: pl.DataFrame, now: datetime
) -> "ExpectationSuiteValidationResult":
    import great_expectations as gx
    from great_expectations.core.run_identifier import RunIdentifier

    asset = context.data_sources.add_pandas("evidence").add_dataframe_asset(suite.name)
    definition = gx.ValidationDefinition(
        name=suite.name,
        data=asset.add_batch_definition_whole_dataframe("all partitions of the run"),
        suite=context.suites.add(suite),
    )
    return context.validation_definitions.add(definition).run(
        batch_parameters={"dataframe": summary.to_pandas()},
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": [PARTITION],
            "return_unexpected_index_query": False,
        },
        run_id=RunIdentifier(run_name=suite.name, run_time=now),
    )


def _column(found: "ExpectationValidationResult") -> str:
    configuration = found.expectation_config
    return "" if configuration is None else str(configuration.kwargs["column"])


def _failing(found: "ExpectationValidationResult") -> set[str]:
    """Return the partitions of which an expectation does not hold. An error in it is an error."""
    problem = found.exception_info
    if problem.get("raised_exception"):
        raise RuntimeError(f"{_column(found)} was not judged: {problem['exception_message']}")
    return {row[PARTITION] for row in found.result.get("unexpected_index_list") or ()}
