"""Check the evidence of `lowwater parity` against a store, sharing no code: EVIDENCE SIDE PLACE."""

import json
import sys
from collections import defaultdict
from hashlib import md5
from struct import unpack

US = """case when isfinite({0}) then (epoch_us({0}) - 946684800000000)::bit::blob
when {0} > 'epoch' then unhex('7fffffffffffffff') else unhex('8000000000000000') end"""
DAYS = """case when isfinite({0}) then ({0} - date '2000-01-01')::integer::bit::blob
when {0} > 'epoch' then unhex('7fffffff') else unhex('80000000') end"""
NAN = r"case when {0} = 'NaN' then '\x7ff8000000000000'::bytea else float8send({0} + 0.0) end"
DUCK_NAN = "case when isnan({0}) then unhex('7ff8000000000000') else ({0} + 0.0)"
PG_TEXT = "int4send(octet_length({0})) || convert_to({0}, 'UTF8')"
DUCK_TEXT = "octet_length(encode({0}))::integer::bit::blob || encode({0})"
PG = {"int": "int8send({0}::bigint)", "bool": "boolsend({0})", "float": NAN, "text": PG_TEXT}
PG |= {"instant": "timestamptz_send({0})", "local": "timestamp_send({0})", "uuid": "uuid_send({0})"}
PG |= {"bytes": "int4send(octet_length({0})) || {0}", "date": "date_send({0})"}
DUCK = {"int": "{0}::bigint::bit::blob", "bool": "{0}::bit::blob", "text": DUCK_TEXT}
DUCK |= {"float": DUCK_NAN + "::bit::blob end", "instant": US, "local": US, "date": DAYS}
DUCK |= {"bytes": "octet_length({0})::integer::bit::blob || {0}", "uuid": "{0}::blob"}

evidence, side, place = json.loads(open(sys.argv[1]).read()), sys.argv[2], sys.argv[3]  # noqa: PTH123, SIM115
base, _, table = place.partition("?")[0].rpartition("/")
if place.startswith("postgres"):
    from adbc_driver_postgresql import dbapi

    bodies, text, bytea = PG, PG_TEXT, "bytea"
    cursor = dbapi.connect(f"{base}?{place.partition('?')[2]}").cursor()
else:
    import duckdb

    bodies, text, bytea = DUCK, DUCK_TEXT, "blob"
    cursor = duckdb.connect(base, read_only=True).execute("set TimeZone = 'UTC'")
frame = defaultdict(list)
for name, kind, role in evidence["contract"]:
    spelled = text.replace("{0}", rf"regexp_replace({{0}}::{kind}::text, '^(-?)\.', '\10.')")
    body = bodies.get(kind, spelled).format('"' + name.replace('"', '""') + '"')
    frame[role.rstrip("?")].append(rf"coalesce('\x01'::{bytea} || {body}, '\x00'::{bytea})")
frame["value"] = (key := frame["key"]) + frame["value"]
cursor.execute(f"select {' || '.join(key)}, {' || '.join(frame['value'])} from {table}")  # noqa: S608
found, wanted = defaultdict(lambda: [0] * 9), defaultdict(lambda: [0] * 9)
for frames in cursor.fetchall():
    k, s = (unpack("<4I", md5(frame).digest()) for frame in frames)  # noqa: S324
    found[k[0] & 4095] = [a + b for a, b in zip(found[k[0] & 4095], (1, *s, *k), strict=True)]
for bucket, *cell, _dup in (row for part in evidence["partitions"] for row in part[side]):
    wanted[bucket] = [a + b for a, b in zip(wanted[bucket], cell, strict=True)]
print("the store holds what the evidence says" if found == wanted else "the store holds other rows")  # noqa: T201
sys.exit(found != wanted)
