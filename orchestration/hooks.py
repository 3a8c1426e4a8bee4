"""How people are told: a webhook that gets JSON, or a command that reads it.

Here belongs the delivery of one alert. What is an alert is in ``alerts``. Which hook there is, is
said by the environment (``settings``); an address may hold a secret and is never shown.
"""

import json
import shlex
import subprocess
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from orchestration.settings import Settings
from transforms.errors import UsageError

PATIENCE_S: Final = 10


@dataclass(frozen=True)
class Alert:
    """What somebody should know: its kind, the stream (empty: none), and one line on what to do.

    ``key`` names the occasion: one that was told of once is not told of again.
    """

    kind: str
    stream: str
    key: str
    text: str

    def as_json(self) -> str:
        """Return the alert for programs; ``text`` at the top is what chat services show."""
        return json.dumps({**asdict(self), "source": "lowwater"}, sort_keys=True)


class Hook(Protocol):
    """Somebody who is told."""

    def tell(self, alert: Alert) -> None:
        """Deliver an alert. Raises OSError if it could not be delivered."""


@dataclass(frozen=True)
class Webhook:
    """An address that alerts are posted to."""

    url: str

    def tell(self, alert: Alert) -> None:
        """Post an alert; anything but success is an OSError."""
        request = urllib.request.Request(  # noqa: S310 (settings allow http and https alone)
            self.url,
            data=alert.as_json().encode(),
            headers={"Content-Type": "application/json", "User-Agent": "lowwater"},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S):  # noqa: S310 (the same)
                return
        except urllib.error.HTTPError as error:
            with error:
                raise OSError(f"the alert webhook answers {error.code}") from None
        except (urllib.error.URLError, TimeoutError) as error:
            raise OSError(f"the alert webhook does not answer: {_reason(error)}") from None


@dataclass(frozen=True)
class Command:
    """A program that gets an alert as JSON on its standard input; no shell is in between."""

    words: tuple[str, ...]

    def tell(self, alert: Alert) -> None:
        """Run the program; an exit code other than 0 is an OSError."""
        try:
            done = subprocess.run(  # noqa: S603 (the program of the settings)
                self.words,
                input=alert.as_json().encode(),
                timeout=PATIENCE_S,
                check=False,
                stdout=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(f"the alert command took more than {PATIENCE_S} seconds") from error
        if done.returncode:
            raise OSError(f"the alert command ended with exit code {done.returncode}")


def hooks_of(settings: Settings) -> tuple[Hook, ...]:
    """Return the hooks of an installation. Raises UsageError for an address that is none."""
    hooks: list[Hook] = []
    if settings.alert_webhook:
        if not settings.alert_webhook.startswith(("http://", "https://")):
            raise UsageError("LOWWATER_ALERT_WEBHOOK: allowed is an address with http or https")
        hooks.append(Webhook(settings.alert_webhook))
    if settings.alert_command:
        hooks.append(Command(tuple(shlex.split(settings.alert_command))))
    return tuple(hooks)


def _reason(error: BaseException) -> str:
    """What went wrong, without the address."""
    return type(getattr(error, "reason", error)).__name__
