"""How a command hands over its result: lines for people, or JSON for programs, on stdout."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from transforms.errors import one_line

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]


def show(result: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print the one or the other. ``result`` holds what JSON can hold.

    Keys and file names may hold anything: line ends and what a terminal obeys are shown as escapes.
    """
    typer.echo(json.dumps(result, indent=2) if as_json else "\n".join(map(one_line, lines)))
