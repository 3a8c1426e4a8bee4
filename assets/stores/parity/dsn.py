"""Data source names of PostgreSQL: taken apart, and shown without anything secret.

Both forms that libpq knows: ``postgresql://user@host/db?options`` and ``host=... dbname=...``. Here
belongs the only code that looks into a DSN; a password leaves it in no message.
"""

import re
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from transforms.errors import UsageError

SCHEMES = ("postgresql", "postgres")
_SECRET_OPTIONS = ("password", "sslpassword", "passfile", "sslkey")
_WORD = re.compile(r"(?P<name>\w+)\s*=\s*(?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?P<plain>[^\s']\S*))")
_URI = re.compile(r"\w+://(?:(?P<login>[^?]*)@)?(?P<rest>[^?]*)(?:\?(?P<options>.*))?")
_OPTION = re.compile(rf"\b(?:{'|'.join(_SECRET_OPTIONS)})=([^&\s]+)")
_SERVER = re.compile(r"(?P<host>[^:]*|\[[^]]*\])(?::(?P<port>\d*))?")
_TIMEOUT = "connect_timeout"


def split_table(text: str) -> tuple[str, str]:
    """``postgresql://user@host/db/schema.table?options`` as the DSN and the quoted table."""
    parts = urlsplit(text)
    database, _, table = parts.path.lstrip("/").partition("/")
    if not table:
        raise UsageError(
            f"{redacted(text)}: name the table after the database, as in postgresql://host/db/table"
        )
    return urlunsplit(parts._replace(path=f"/{database}")), quoted_table(table)


def quoted_table(table: str) -> str:
    """``schema.table`` with each part quoted; a part that is quoted already stays as it is."""
    parts = [table] if table.startswith('"') else table.split(".")
    return ".".join(
        part if part.startswith('"') else '"' + part.replace('"', '""') + '"' for part in parts
    )


def redacted(dsn: str) -> str:
    """Server and database; no user, no password, no options."""
    uri = _URI.fullmatch(dsn)
    if uri is None:
        words = _words(dsn)
        return _shown(words.get("host", ""), words.get("port", ""), words.get("dbname", ""))
    place, _, path = uri["rest"].partition("/")
    server = _SERVER.fullmatch(place)
    if server is None:  # a password that is not quoted as it should be may stand here
        return _shown("unreadable", "", "")
    options = parse_qs(uri["options"] or "")
    host = server["host"] or options.get("host", [""])[0]
    return _shown(host, server["port"] or "", path.split("/")[0])


def secrets_of(dsn: str) -> list[str]:
    """Every text in it that nobody may read, as it stands there and as it is meant."""
    if _URI.fullmatch(dsn) is None:
        words = _words(dsn)
        found = [words[name] for name in _SECRET_OPTIONS if name in words]
    else:
        login, at, _ = dsn.partition("://")[2].rpartition("@")
        password = login.partition(":")[2] if at else ""
        # A slash that is not quoted ends the address early, so its parts are secrets too.
        found = [password, *re.split(r"[/?#@:]", password), *_OPTION.findall(dsn)]
    texts = {text for each in found for text in (each, unquote(each)) if text}
    return sorted(texts, key=len, reverse=True)


def explained(error: Exception, dsn: str) -> str:
    """The first line of what a server said, without any secret of the address."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    first = lines[0].split("ERROR:  ")[-1].removeprefix("IO: [libpq] ")
    for secret in secrets_of(dsn):
        first = first.replace(secret, "***")
    return first


def with_timeout(dsn: str, seconds: int = 10) -> str:
    """The same address, which gives up connecting after a while, unless it says so itself."""
    if _TIMEOUT in dsn:
        return dsn
    if _URI.fullmatch(dsn) is None:
        return f"{dsn} {_TIMEOUT}={seconds}"
    return f"{dsn}{'&' if '?' in dsn else '?'}{_TIMEOUT}={seconds}"


def _words(dsn: str) -> dict[str, str]:
    found = _WORD.finditer(dsn)
    return {word["name"]: word["quoted"] or word["plain"] or "" for word in found}


def _shown(host: str, port: str, database: str) -> str:
    return f"postgresql://{host or 'local'}{':' if port else ''}{port}/{database}"
