"""The reports over HTTP: read only, on the loopback, so that links to them work in the UI.

A browser opens no file from a page that came over HTTP. Here belongs how the files of one folder
are served, and that nothing else is; what is in them is the business of ``expectations.report``.
"""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Final

HOST: Final = "127.0.0.1"
# Pages are whole in themselves: nothing is loaded from elsewhere, nothing is sent anywhere.
POLICY: Final = "default-src 'self' 'unsafe-inline' data:; form-action 'none'; base-uri 'none'"


class Reader(SimpleHTTPRequestHandler):
    """Answers with the files of its folder; a folder itself is listed to nobody."""

    def end_headers(self) -> None:
        """Say of every answer what a browser may do with it."""
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def list_directory(self, path: object) -> IO[bytes] | None:  # type: ignore[override]
        """Refuse."""
        del path
        self.send_error(404)
        return None

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (its name there)
        """Say nothing: a path may hold anything, and nobody asks who read a report."""


def report_server(folder: Path, port: int, host: str = HOST) -> ThreadingHTTPServer:
    """Return a server for the files of a folder; ``port`` 0 takes a free one."""
    return ThreadingHTTPServer((host, port), partial(Reader, directory=str(folder)))
