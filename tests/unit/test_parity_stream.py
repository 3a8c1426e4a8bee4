from transforms.parity.contract import Contract
from transforms.parity.stream import published_contract
from transforms.spec import load_spec

SPEC = """
name: gauges
source: {kind: files, path: "*.ndjson", format: ndjson}
columns:
  key: [site, probe]
  event_time: {column: at, unit: iso8601}
  arrival_time: {column: came, unit: iso8601}
  values: {stage: float, price: "decimal(9,2)", open: bool}
arrival: {grain: day, start: 2024-01-01, zone: UTC}
events: {grain: day}
profiles:
  default: {grace: 90s, idle_timeout: 10m, capacity: 256, future_skew: 5m}
windows: [{name: hour, every: 1h}]
aggregates: {stage: [mean], price: [sum, min], open: [max]}
target: default
"""


def contract(text: str = SPEC) -> Contract:
    return published_contract(load_spec(text, file="gauges.yaml"))


def test_the_contract_of_a_stream_is_its_window_key_first() -> None:
    rows = contract().as_rows()
    assert rows[:4] == [
        ["stream", "text", "key"],
        ["window", "text", "key"],
        ["key", "text", "key"],
        ["window_start", "instant", "key"],
    ]
    values = {name: (kind, role) for name, kind, role in rows[4:]}
    assert values["window_end"] == ("instant", "value")
    assert values["site"] == ("text", "value")
    assert values["stage_mean"] == ("float", "value")
    assert values["price_sum"] == ("decimal(38,2)", "value")
    assert values["price_min"] == ("decimal(9,2)", "value")
    assert values["open_max"] == ("int", "value")
    assert values["revision"] == ("int", "value")
    assert values["known_at"] == ("instant", "value")


def test_who_published_and_when_is_not_compared() -> None:
    unproven = [name for name, _, role in contract().as_rows() if role == "unproven"]
    assert unproven == ["published_at", "run_id"]


def test_another_statistic_is_another_contract() -> None:
    assert contract().fingerprint == contract().fingerprint
    assert contract().fingerprint != contract(SPEC.replace("[mean]", "[max]")).fingerprint
