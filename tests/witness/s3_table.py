"""Try servers of other projects that speak S3, and write the table of docs/s3-servers.md.

    python -m tests.witness s3-servers                    all of them; about an hour each to build
    python -m tests.witness s3-servers moto versitygw     some; the others stay as recorded
    python -m tests.witness s3-servers --record           write down what is found, and the page

Each server answers the probe of a set-up, is held to the rules of the stores, and has jobs of each
committer on it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from asynccommit import open_job
from asynccommit.errors import UnsupportedError
from asynccommit.runtime.host import this_host
from asynccommit.stores.http.base import HttpSettings, Response
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.s3.abilities import Abilities, find_abilities
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.tree import tree_pages
from asynccommit.stores.urls import parse_url
from tests.witness.expectations import say
from tests.witness.s3_builds import NOT_HAD, NOT_RUN, SERVERS, Running, Server
from tests.witness.s3_server import check

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).with_name("s3_servers.json")
PAGE = ROOT / "docs" / "s3-servers.md"
COMMITTERS = ("magic", "directory", "partitioned")
_PART = 5 << 20
_FILES = {"day=1/large": b"0123456789abcdef" * (11 << 15), "day=2/a b+c%d": b"1,2", "empty": b""}
_TEXT = """# Servers of S3

What servers of other projects can do, tried on {day} at commit `{commit}` by

```text
make witness ARGS=s3-servers
```

in a clone of this project, which builds each server from the package that its makers have
published, starts it with one node on a disk or in memory, and ends it again. What a set-up of a
job asks, and what follows from the answers, is in [stores-s3.md](stores-s3.md#what-is-tried).

"""
_ROWS: Mapping[str, str] = {
    "puts": "put, `If-None-Match: *`",
    "versions": "put, `If-Match`",
    "completes": "completion, `If-None-Match: *`",
    "replaces": "completion, `If-Match`",
    "waits": "an upload waits after a refused completion",
    "repeats": "a repeated completion is answered as one",
    "tells": "the abort of a completed upload is an error",
    "keeps": "an abort keeps the object of the key",
    "ends": "an aborted upload is never completed",
    "clears": "an aborted upload is listed no more",
    "crc32": "CRC32 is checked",
    "crc64nvme": "CRC64NVME is checked",
}
_AFTER = """
"Rules kept" counts the rules of the contract that the tests hold each store to, by a store that
has learned nothing by the probe; the requests are those of probe and rules. "Jobs" are three by
each of the committers {committers}: the second replaces the table of the
first, by a file of two parts, a small one and an empty one, and the third fails and is aborted.
All files must then be there as they were written, and no upload be left.

"""


@dataclass
class Tried:
    """The results of one server."""

    version: str
    source: str
    abilities: dict[str, bool] = field(default_factory=dict)
    rules: int = 0
    broken: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    missing: str = ""


class _Counting:
    """A transport that counts requests."""

    def __init__(self) -> None:
        self._inner = open_transport(HttpSettings())
        self.requests = 0

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """See ``Transport``."""
        self.requests += 1
        return await self._inner.send(method, url, headers, body, limit=limit)

    async def aclose(self) -> None:
        """See ``Transport``."""
        await self._inner.aclose()


# --- what is tried -----------------------------------------------------------------------------


def try_server(server: Server, *, rules: bool = True) -> Tried:
    """Start a server and try it; without ``rules`` leave out those of the contract."""
    found = Tried(server.version, server.source)
    try:
        with server.running() as running:
            bucket = _bucket(running)
            asyncio.run(_try(server, running, bucket, found, rules=rules))
    except (UnsupportedError, ImportError) as error:
        found.missing = " ".join(str(error).split())[:300]
    return found


def _bucket(running: Running) -> str:
    import botocore.session

    name = f"witness-{this_host().new_id()[:8]}"
    client = botocore.session.get_session().create_client(
        "s3",
        endpoint_url=running.url,
        aws_access_key_id=running.key,
        aws_secret_access_key=running.secret,
        region_name=running.region,
    )
    client.create_bucket(Bucket=name)
    client.close()
    return name


async def _try(server: Server, running: Running, bucket: str, found: Tried, *, rules: bool) -> None:
    transport = _Counting()
    address = parse_url(f"s3://{bucket}/")
    store = S3Store(address, running.options, environ={}, transport=transport)
    assert store.traits.multipart is not None
    try:
        found.abilities = (await find_abilities(store.trial("/probe")))._asdict()
        if server.smallest:
            bounds = store.traits.multipart._replace(smallest=server.smallest)
            store.traits = replace(store.traits, multipart=bounds)
        if rules:
            async for name, said in check(store, "rules"):
                found.rules += 1
                found.broken.update({name: said} if said else {})
        for committer in COMMITTERS:
            found.jobs[committer] = await _try_jobs(store, running, bucket, committer)
        found.requests = transport.requests
    finally:
        await store.aclose()


async def _try_jobs(store: S3Store, running: Running, bucket: str, committer: str) -> str:
    """Run three jobs of a committer; return what is wrong."""
    try:
        async with asyncio.timeout(300):
            return await _jobs(store, running, bucket, committer)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


async def _jobs(store: S3Store, running: Running, bucket: str, committer: str) -> str:
    url, path = f"s3://{bucket}/{committer}", f"/{committer}"
    unique = {"fs.s3a.committer.staging.unique-filenames": "false"}
    given: dict[str, Any] = {"storage_options": running.options, "committer": committer}
    given["options"] = {"fs.s3a.multipart.size": str(_PART), **unique}
    async with open_job(url, **given) as first, first.task(0) as task:
        await task.put("day=1/old", b"old")
        await task.put("day=3/old", b"old")
    async with open_job(url, **given, mode="replace_table") as job, job.task(0) as task:
        for name, data in _FILES.items():
            await task.put(name, data)
    try:
        async with open_job(url, **given) as last, last.task(0) as task:
            await task.put("day=9/never", b"never")
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    pages = [page async for page in tree_pages(store, path)]
    there = {info.path: info for page in pages for info in page if not info.is_dir}
    there.pop(f"{path}/_SUCCESS")
    read = {name: await store.get(name, 1 << 30) for name in there}
    wanted = {f"{path}/{name}": data for name, data in _FILES.items()}
    uploads = (await store.list_uploads(path)).entries
    if read != wanted:
        return f"{sorted(there)} are there"
    return f"{len(uploads)} uploads are left" if uploads else ""


# --- what is written ---------------------------------------------------------------------------


def load() -> dict[str, Any]:
    """Return what was recorded."""
    found: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return found


def page(recorded: Mapping[str, Any]) -> str:
    """Return the page of the documentation."""
    tried = {name: Tried(**one) for name, one in recorded["servers"].items()}
    had = {name: one for name, one in tried.items() if not one.missing}
    lines = [_TEXT.format(day=recorded["date"], commit=recorded["commit"]).rstrip("\n"), ""]
    lines += [_row("", had), f"|---{'|---' * len(had)}|"]
    for row, text in _ROWS.items():
        lines.append(_row(text, {name: _yes(one.abilities[row]) for name, one in had.items()}))
    kept = {name: f"{one.rules - len(one.broken)} of {one.rules}" for name, one in had.items()}
    lines.append(_row("rules kept", kept))
    jobs = {name: f"{_good(one)} of {len(one.jobs)}" for name, one in had.items()}
    lines.append(_row("jobs", jobs))
    lines.append(_row("requests", {name: f"{one.requests:,}" for name, one in had.items()}))
    lines.append(_AFTER.format(committers=", ".join(COMMITTERS)).rstrip("\n"))
    lines += ["", *_faults(had), "", *_others(tried), ""]
    return "\n".join(lines)


def _row(first: str, cells: Mapping[str, object]) -> str:
    if not first:
        cells = {name: f"{name} {getattr(one, 'version', '')}" for name, one in cells.items()}
    return f"| {' | '.join([first, *map(str, cells.values())])} |".replace("|  |", "| |")


def _yes(answer: bool) -> str:
    return "yes" if answer else "**no**"


def _good(one: Tried) -> int:
    return sum(not said for said in one.jobs.values())


def _faults(had: Mapping[str, Tried]) -> list[str]:
    """Return a line for each server that breaks something."""
    lines = ["What they break:", ""]
    for name, one in had.items():
        rules = [f"`{rule}`" for rule in sorted(one.broken)]
        jobs = [f"jobs of `{job}`" for job, said in one.jobs.items() if said]
        if rules or jobs:
            lines.append(f"- {name}: {', '.join(rules + jobs)};")
    lines[-1] = lines[-1].rstrip(";") + "."
    return lines


def _others(tried: Mapping[str, Tried]) -> list[str]:
    """Return the lines about servers that were not tried."""
    lines = ["| not tried | why |", "|---|---|"]
    missing = {f"{name} {one.version}": one.missing for name, one in tried.items() if one.missing}
    for name, why in {**missing, **NOT_HAD, **NOT_RUN}.items():
        lines.append(f"| {name} | {why} |")
    return lines


def main(names: Collection[str], *, record: bool) -> int:
    """Try servers; return 1 if anything differs from what is recorded."""
    old = load() if RECORDED.exists() else {"servers": {}}
    servers: dict[str, Any] = dict(old["servers"])
    changed = []
    for server in SERVERS:
        if names and server.name not in names:
            continue
        found = asdict(try_server(server))
        say(f"{server.name} {server.version}: {json.dumps(found)}")
        if _essence(found) != _essence(servers.get(server.name, {})):
            changed.append(server.name)
        servers[server.name] = found
    if record:
        ordered = {one.name: servers[one.name] for one in SERVERS if one.name in servers}
        new = {"date": str(date.today()), "commit": _commit(), "servers": ordered}
        RECORDED.write_text(json.dumps(new, indent=1) + "\n", "utf-8")
        PAGE.write_text(page(new), "utf-8")
        return 0
    say("".join(f"{name}: not as recorded\n" for name in changed))
    return int(bool(changed))


def _essence(found: Mapping[str, Any]) -> Any:
    """Return what a server does, without the words of its errors."""
    jobs = {job: bool(said) for job, said in found.get("jobs", {}).items()}
    return found.get("version"), found.get("abilities"), sorted(found.get("broken", ())), jobs


def _commit() -> str:
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    return subprocess.check_output(asked, cwd=ROOT, text=True).strip()


assert _ROWS.keys() == set(Abilities._fields)
