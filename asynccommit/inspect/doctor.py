"""Checks of this machine and of a store, for ``asynccommit doctor``."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from asynccommit.errors import AsyncCommitError, ExistsError, NotFoundError, PreconditionError
from asynccommit.inspect.credentials import credential_source
from asynccommit.redact import redact
from asynccommit.runtime.host import this_host
from asynccommit.runtime.terminal import show_seconds
from asynccommit.stores.base import Kind, Store, Traits
from asynccommit.stores.opening import open_place
from asynccommit.stores.tree import is_there, remove_directory, remove_file, remove_tree
from asynccommit.stores.unchanged import ELSEWHERE, keeps_etag
from asynccommit.stores.urls import Address

_JAVA = 17
_SKEW_SECONDS = 30.0
_EXTRAS = {
    "pyspark": "spark",
    "aiohttp": "adls,gcs,s3",
    "azure-identity": "adls",
    "gcloud-aio-auth": "gcs",
    "botocore": "s3",
    "hdfs-native": "hdfs",
    "fsspec": "fsspec",
    "pyreqwest": "fast",
    "uvloop": "fast",
}
"""Distribution -> the extras that it belongs to."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Attributes:
        name: what was checked.
        found: what was found.
        ok: false for a problem, ``None`` if it is only a fact.
        remedy: what to do about a problem.
        lines: settings for the remedy, to be copied.
    """

    name: str
    found: str
    ok: bool | None = None
    remedy: str = ""
    lines: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """The results of all checks.

    Its text is a table; a notebook shows it so, too.

    Attributes:
        checks: the results in order.
    """

    checks: Sequence[Check]

    @property
    def ok(self) -> bool:
        """Return whether no check has found a problem."""
        return all(check.ok is not False for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"ok": self.ok, "checks": [check.to_json() for check in self.checks]}

    def __repr__(self) -> str:
        from asynccommit.runtime.cells import to_text

        return to_text(self.__rich__(), shutil.get_terminal_size((100, 24)).columns)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        from asynccommit.runtime.cells import copied, safe

        table = Table(box=None, show_header=False, pad_edge=False)
        for _ in range(3):
            table.add_column(overflow="fold")
        for check in self.checks:
            remedy = f"; {check.remedy}" if check.remedy and check.ok is not True else ""
            style = "red" if check.ok is False else ""
            table.add_row(check.name, safe(_MARKS[check.ok], style), safe(check.found + remedy))
        lines: list[Text] = []
        for check in self.checks:
            if check.lines and check.ok is not True:
                lines += [Text(), safe(f"settings for {check.name}")]
                lines += [copied(text, 4) for text in check.lines]
        return Group(table, *lines)


_MARKS = {True: "ok", False: "problem", None: ""}


def check_machine() -> Iterator[Check]:
    """Yield the checks of this machine: Python, packages, Java."""
    yield Check("asynccommit", version("asynccommit"))
    yield Check("Python", f"{platform.python_version()}, {sys.executable}")
    yield Check("umask", f"{umask():03o} of this process")
    for name, extras in _EXTRAS.items():
        try:
            yield Check(name, version(name))
        except PackageNotFoundError:
            one = extras.partition(",")[0]
            yield Check(name, "not installed", None, f"pip install 'asynccommit[{one}]'")
    yield check_java(os.environ)


def umask() -> int:
    """Return the umask of this process."""
    with suppress(OSError):
        found = re.search(
            r"^Umask:\s*([0-7]+)", Path("/proc/self/status").read_text(), re.MULTILINE
        )
        if found:
            return int(found[1], 8)
    mask = os.umask(0o077)  # another thread may make a file meanwhile
    os.umask(mask)
    return mask


def check_java(environ: Mapping[str, str]) -> Check:
    """Return the version of Java that Spark would use."""
    home = environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java", path=environ.get("PATH"))
    if not program or not os.access(program, os.X_OK):
        where = f"{program} is no program" if home else "no java on the PATH"
        remedy = f"for Spark install Java {_JAVA} or newer, or set JAVA_HOME"
        return Check("Java", where, None, remedy)
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    first = (done.stderr or done.stdout).partition("\n")[0].strip()
    number = re.search(r'"(?:1\.)?(\d+)', first)
    if number is None or int(number[1]) < _JAVA:
        return Check("Java", f"{first or 'no version'}, {program}", False, f"install Java {_JAVA}")
    return Check("Java", f"{first}, {program}", ok=True)


async def check_place(
    place: Address, storage: Mapping[str, Any], *, write: bool
) -> AsyncIterator[Check]:
    """Yield the checks of a destination.

    Args:
        place: the destination.
        storage: options of its store.
        write: whether a directory is made below the destination for the checks, and deleted.
    """
    source = credential_source(place.scheme, storage, os.environ)
    if source is not None:
        yield Check("credentials", source)
    try:
        async with open_place(place, storage_options=storage, retry_seconds=20) as store:
            async for check in _check_store(store, place, write=write):
                yield check
    except AsyncCommitError as error:
        yield Check("store", redact(str(error)), ok=False, remedy="see docs/errors.md")


async def _check_store(store: Store, place: Address, *, write: bool) -> AsyncIterator[Check]:
    try:
        info = await store.head(place.path)
        kind = info.kind.value
        yield Check("destination", kind, info.kind is not Kind.FILE or None)
    except NotFoundError:
        yield Check("destination", "does not exist yet; a job makes it")
    traits = store.traits
    yield Check("store", traits.name, ok=True)
    yield Check("committer", committer_for(traits))
    if write:
        async with own_directory(store, place.path) as directory:
            async for check in _probe(store, directory):
                yield check


def committer_for(traits: Traits) -> str:
    """Return the committer that is the default on a store, with the reason."""
    if traits.atomic_rename:
        return "manifest: the store renames files atomically"
    return "magic: the store has no rename, so uploads are completed by the job commit"


@asynccontextmanager
async def own_directory(store: Store, place: str) -> AsyncIterator[str]:
    """Make a directory of our own below a place, and delete it in the end.

    A place that was not there before is deleted too, if it is empty: Spark's default mode refuses
    to write to one that is there.
    """
    there = await is_there(store, place)
    directory = f"{place.rstrip('/')}/_asynccommit-doctor-{this_host().new_id()}"
    await store.mkdir(directory)
    try:
        yield directory
    finally:
        with suppress(NotFoundError):
            await remove_tree(store, directory)
        if not there:
            with suppress(NotFoundError, ExistsError):
                await remove_directory(store, place)


async def _probe(store: Store, directory: str) -> AsyncIterator[Check]:
    """Yield what requests do that a commit depends on."""
    one, two = f"{directory}/one", f"{directory}/two"
    began = this_host().now()
    written = await store.put(one, b"1")
    took = this_host().now() - began
    yield Check("write", f"done in {show_seconds(took)}", ok=True)
    if written.modified:
        skew = written.modified - (began + took / 2)
        text = f"the store's clock is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}"
        remedy = "set this machine's clock: leases compare times"
        yield Check("clock", text, abs(skew) < _SKEW_SECONDS, remedy)
    yield await refused("no overwrite", lambda: store.put(one, b"2", overwrite=False))
    if store.traits.atomic_rename:
        await store.put(two, b"2")
        yield await refused("no replacing rename", lambda: store.rename(one, two))
        await remove_file(store, two)
        kept = await keeps_etag(store, one, two)
        remedy = "lost responses of renames cannot be settled here"
        if store.traits.file_etags:
            remedy = f"no job can be committed there: {ELSEWHERE}"
        yield Check("rename", "keeps the etag" if kept else "changes the etag", kept, remedy)


async def refused(name: str, request: Callable[[], Awaitable[object]]) -> Check:
    """Return whether the store refuses a request that must be refused."""
    try:
        await request()
    except (ExistsError, PreconditionError):
        return Check(name, "refused, as it must be", ok=True)
    remedy = "this service ignores a condition that commits depend on: do not commit there"
    return Check(name, "done, although something was there", False, remedy)
