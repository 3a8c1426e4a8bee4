"""The reports over HTTP: pages and nothing else, read only, on the loopback."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from assets.quality import Reports
from orchestration.report_server import report_server
from orchestration.settings import Settings


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    page = tmp_path / "reports" / "river" / "quality.html"
    page.parent.mkdir(parents=True)
    page.write_text("<h1>river</h1>")
    (tmp_path / "secret").write_text("secret")
    with report_server(tmp_path / "reports", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{server.server_address[0]}:{server.server_port}"
        server.shutdown()
        thread.join()


def status(url: str, method: str = "GET") -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:  # noqa: S310 (our own server)
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_page_opens_and_may_load_nothing_from_elsewhere(url: str) -> None:
    with urllib.request.urlopen(f"{url}/river/quality.html") as answer:  # noqa: S310 (the same)
        assert answer.read() == b"<h1>river</h1>"
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")


@pytest.mark.parametrize(
    "path", ["/", "/river/", "/../secret", "/%2e%2e/secret", "/river/..%2f..%2f..%2fsecret"]
)
def test_no_folder_is_listed_and_nothing_outside_is_read(url: str, path: str) -> None:
    assert status(url + path) == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_written(url: str, method: str) -> None:
    assert status(f"{url}/river/quality.html", method) == 501


def test_it_listens_on_the_loopback_alone(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")


def test_the_ui_links_to_where_reports_are_served() -> None:
    served = Reports(Path("/srv/reports"), "https://low.example/reports/")
    assert served.link("river") == "https://low.example/reports/river/quality.html"
    assert Reports(Path("/srv/reports")).link("river") == "file:///srv/reports/river/quality.html"
    assert Settings.from_environment({}).reports_url == "http://127.0.0.1:3001"
