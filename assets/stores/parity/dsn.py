"""Data source names of PostgreSQL: taken apart, and shown without anything secret.

Here belongs the only code that looks into a DSN; a password leaves it in no message.
"""

from urllib.parse import parse_qs, urlsplit, urlunsplit

from transforms.errors import UsageError

SCHEMES = ("postgresql", "postgres")


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
    parts = urlsplit(dsn)
    place = parts.hostname or next(iter(parse_qs(parts.query).get("host", ["local"])))
    port = f":{parts.port}" if parts.port else ""
    database = parts.path.lstrip("/").split("/")[0]
    return f"postgresql://{place}{port}/{database}"
