"""``lowwater reports``: the reports on this machine, for the links of the Dagster UI."""

import signal
from types import FrameType
from typing import Annotated

import typer

from orchestration.report_server import HOST, report_server
from orchestration.settings import REPORTS_PORT, Settings
from transforms.errors import UsageError


def command(
    port: Annotated[int, typer.Option("--port", help="The port it listens on.")] = REPORTS_PORT,
    host: Annotated[
        str, typer.Option("--host", help="The address it listens on: this machine alone.")
    ] = HOST,
) -> None:
    """Serve the reports, read only, until Ctrl-C.

    Where they are reached at another address, LOWWATER_REPORTS_URL says which, for the links.
    """
    settings = Settings.from_environment()
    settings.reports.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        with report_server(settings.reports, port, host) as server:
            typer.echo(f"http://{host}:{server.server_port} (Ctrl-C ends it)", err=True)
            server.serve_forever()
    except KeyboardInterrupt:
        return
    except OSError as error:
        raise UsageError(
            f"{host}, port {port}: {error.strerror}; choose another with --port"
        ) from error


def _as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
