"""The console script ``lowwater``: finds the command, and turns what goes wrong into an exit code.

0 all good; 1 ran, and a check failed; 2 bad usage or bad spec; 3 a source or target out of reach or
not as declared; 4 it failed in the middle. Errors go to stderr, one line that says what to do.

A command is a module in ``orchestration.commands`` with a function ``command``; it returns its exit
code or None. Only the module of the command that is called is imported.
"""

import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Final

import typer

from transforms.errors import LowwaterError, SpecError, one_line

# In the order of the help.
COMMANDS: Final[Mapping[str, str]] = {
    "run": "orchestration.commands.run",
    "replay": "orchestration.commands.replay",
    "check": "orchestration.commands.check",
    "dead-letters": "orchestration.commands.dead_letters",
    "grace": "orchestration.commands.grace",
    "audit-order": "orchestration.commands.audit_order",
    "parity": "orchestration.commands.parity",
    "reports": "orchestration.commands.reports",
    "ui": "orchestration.commands.ui",
}
DEBUG: Final = "--debug"
# Options that take all words up to the next option.
MANY: Final = frozenset({"--input", "--order"})
FAILED: Final = 4
# As of a program that SIGINT ended; nothing has to be said to who pressed the keys.
INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = DEBUG in given
    words = repeat_options([word for word in given if word != DEBUG])
    try:
        app = app_of([word for word in words if word in COMMANDS][:1] or COMMANDS)
        return int(app(words, prog_name="lowwater", standalone_mode=False) or 0)
    except typer.TyperException as error:
        message = f"{error.format_message()} See lowwater --help."
        return fail([message], error.exit_code, debug=debug)
    except SpecError as error:
        return fail(map(str, error.problems), error.exit_code, debug=debug)
    except LowwaterError as error:
        return fail([str(error)], error.exit_code, debug=debug)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 (whatever it is, it is one line and exit code 4)
        first = (str(error).splitlines() or [""])[0]
        message = f"{type(error).__name__}: {first} (run again with {DEBUG} to see where)"
        return fail([message], FAILED, debug=debug)


def app_of(names: Iterable[str]) -> typer.Typer:
    """Return the program with the commands of these names."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lowwater)
    for name in names:
        app.command(name)(import_module(COMMANDS[name]).command)
    return app


def lowwater(
    *,
    debug: bool = typer.Option(False, DEBUG, help="Show the traceback of an error."),
) -> None:
    """Late, shuffled, duplicated telemetry becomes windows that can be trusted."""
    # `main` has taken `--debug` out, wherever it stood; here it is for the help alone.
    del debug


def repeat_options(words: Sequence[str]) -> list[str]:
    """Write ``--input A B`` as ``--input A --input B``: the words up to the next option."""
    repeated: list[str] = []
    many: str | None = None
    for word in words:
        if word.startswith("-"):
            many = word if word in MANY else None
            repeated += [] if many else [word]
        else:
            repeated += [many, word] if many else [word]
    return repeated


def fail(messages: Iterable[str], code: int, *, debug: bool) -> int:
    """Say on stderr what is wrong, a line for each message; the exit code is returned."""
    if debug:
        traceback.print_exc()
    for message in messages:
        typer.echo(f"lowwater: {one_line(message)}", err=True)
    return code
