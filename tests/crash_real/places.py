"""Tables on real stores, with a job whose tasks have committed: saved once, restored at will."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from asynccommit.api import Job, JobRef
from asynccommit.options.job import Mode
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator, EmulatorThread
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator, GcsEmulatorThread
from asynccommit.testing.models.adls.nodes import Node, find
from asynccommit.testing.models.gcs.model import GcsService
from asynccommit.testing.models.invariants import bucket_tree

JOB = "killed-0001"
PARTITIONS = 5
OLD_SUCCESS = b'{"name": "of yesterday"}'
OLD: Mapping[str, bytes] = {
    **{
        f"p={p}/old-{n}": b"old %d %d" % (p, n)
        for p, count in ((0, 3), (1, 1))
        for n in range(count)
    },
    "p=9/old-0": b"of a partition that the job does not touch",
    "p=9/deep/old-1": b"deeper",
    "_SUCCESS": OLD_SUCCESS,
}
"""What the table holds before the job: two of its partitions are the job's as well."""

Tree = Mapping[str, str]
"""Path -> digest of the content, ``"/"`` for a directory."""


def new_files(tasks: int, files: int) -> dict[int, dict[str, bytes]]:
    """Return what each task writes."""
    return {
        task: {
            f"p={n % PARTITIONS}/part-{task:03d}-{n:03d}": b"task %d, file %d" % (task, n)
            for n in range(files)
        }
        for task in range(tasks)
    }


def table_after(mode: Mode, written: Mapping[int, Mapping[str, bytes]]) -> dict[str, str]:
    """Return the tree of a table in which the job is committed, ``_SUCCESS`` apart."""
    replaced = tuple(f"p={p}/" for p in range(PARTITIONS))
    kept = {
        path: data
        for path, data in OLD.items()
        if path != "_SUCCESS" and (mode is Mode.APPEND or not path.startswith(replaced))
    }
    return tree_of({**kept, **{p: d for files in written.values() for p, d in files.items()}})


def table_before() -> dict[str, str]:
    """Return the tree of the table as it was."""
    return tree_of(OLD)


def tree_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return files with their directories as a tree."""
    tree: dict[str, str] = {}
    for path, data in files.items():
        tree[path] = digest(data)
        while path := path.rpartition("/")[0]:
            tree[path] = "/"
    return tree


def digest(data: bytes) -> str:
    """Return what a content is compared by."""
    return hashlib.sha256(data).hexdigest()


def visible(tree: Tree) -> dict[str, str]:
    """Return a tree without ``_temporary``."""
    return {path: said for path, said in tree.items() if path.split("/")[0] != "_temporary"}


class Place(Protocol):
    """A destination on a real store."""

    url: str
    arguments: tuple[str, ...]
    rate: int

    @property
    def storage(self) -> dict[str, Any]:
        """Options of the store."""
        ...

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write files with their directories."""
        ...

    def save(self) -> None:
        """Remember the destination as it is."""
        ...

    def restore(self) -> None:
        """Make it so again; files keep their identity."""
        ...

    def busy(self) -> bool:
        """Return whether the store may still execute requests of a client."""
        ...

    def tree(self) -> dict[str, str]:
        """Return all that is there."""
        ...

    def names(self) -> list[str]:
        """Return the paths of all files, also while they move."""
        ...

    def marker(self) -> bytes | None:
        """Return what ``_SUCCESS`` says."""
        ...


class LocalPlace:
    """A table on a local disk.

    The copy is one of links, because a manifest knows a file by its inode.
    """

    def __init__(self, folder: Path, rate: int = 2000) -> None:
        self._dest, self._saved = folder / "table", folder / "saved"
        self.url = str(self._dest)
        self.arguments: tuple[str, ...] = ()
        self.storage: dict[str, str] = {}
        self.rate = rate

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write files with their directories."""
        for name, data in files.items():
            path = self._dest / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def save(self) -> None:
        """Remember the destination as it is."""
        shutil.copytree(self._dest, self._saved, copy_function=os.link)

    def restore(self) -> None:
        """Make it so again; files keep their identity."""
        shutil.rmtree(self._dest, ignore_errors=True)
        shutil.copytree(self._saved, self._dest, copy_function=os.link)

    def busy(self) -> bool:
        """Return false: a process takes its system calls with it."""
        return False

    def tree(self) -> dict[str, str]:
        """Return all that is there."""
        return {
            str(path.relative_to(self._dest)): "/" if path.is_dir() else digest(path.read_bytes())
            for path in self._dest.rglob("*")
        }

    def names(self) -> list[str]:
        """Return the paths of all files, also while they move."""
        found = os.walk(self._dest)
        return [f"{folder}/{name}" for folder, _, names in found for name in names]

    def marker(self) -> bytes | None:
        """Return what ``_SUCCESS`` says."""
        path = self._dest / "_SUCCESS"
        return path.read_bytes() if path.exists() else None


class AdlsPlace:
    """A table on an emulated account."""

    filesystem = "data"
    table = "table"

    def __init__(self, emulator: EmulatorThread, rate: int = 1500) -> None:
        self._emulator = emulator
        self.rate = rate
        self._saved: Node | None = None
        self.url = f"abfs://{self.filesystem}@{self._begin(emulator)}/{self.table}"
        endpoint = emulator.endpoint.partition("://")[2]
        there = {"account_host": endpoint, "use_ssl": "false"}
        told, here = self._credentials(emulator)
        self.storage: dict[str, Any] = {**there, **here}
        self.arguments = tuple(
            word for key, value in {**there, **told}.items() for word in ("-s", f"{key}={value}")
        )

    def _begin(self, emulator: EmulatorThread) -> str:
        """Make the filesystem, and return the host of the URL."""
        emulator.do(lambda it: it.model.create_filesystem(self.filesystem))
        return f"{emulator.account}.dfs.core.windows.net"

    def _credentials(self, emulator: EmulatorThread) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the options of other processes, and those of this one."""
        key = {"account_key": emulator.key}
        return key, key

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write files with their directories."""

        def write(it: AdlsEmulator) -> None:
            for name, data in files.items():
                path = f"{self.table}/{name}"
                it.model.create(self.filesystem, path)
                it.model.append(self.filesystem, path, 0, data, flush=True)

        self._emulator.do(write)

    def save(self) -> None:
        """Remember the destination as it is."""
        self._saved = self._emulator.do(lambda it: copy.deepcopy(self._root(it)))

    def restore(self) -> None:
        """Make it so again; files keep their identity."""

        def put_back(it: AdlsEmulator) -> None:
            assert self._saved is not None
            it.model.head_filesystem(self.filesystem).root = copy.deepcopy(self._saved)

        self._emulator.do(put_back)

    def busy(self) -> bool:
        """Return whether the store may still execute requests of a client."""
        return bool(self._emulator.do(lambda it: it.stats()["connections"]))

    def tree(self) -> dict[str, str]:
        """Return all that is there."""
        return self._emulator.do(lambda it: dict(_walk(find(self._root(it), self.table))))

    def names(self) -> list[str]:
        """Return the paths of all files, also while they move."""
        return [path for path, said in self.tree().items() if said != "/"]

    def marker(self) -> bytes | None:
        """Return what ``_SUCCESS`` says."""
        node = self._emulator.do(lambda it: find(self._root(it), f"{self.table}/_SUCCESS"))
        return node.read() if node is not None else None

    def _root(self, emulator: AdlsEmulator) -> Node:
        return emulator.model.head_filesystem(self.filesystem).root


class OneLakePlace(AdlsPlace):
    """A table in a managed folder of OneLake; ``az`` of ``tokens_by_az`` gives the tokens."""

    filesystem = "Sales_1"
    table = "Orders.Lakehouse/Files/table"

    def _begin(self, emulator: EmulatorThread) -> str:
        return "onelake.dfs.fabric.microsoft.com"

    def _credentials(self, emulator: EmulatorThread) -> tuple[dict[str, str], dict[str, Any]]:
        # A managed identity would be looked for in the network.
        return {"exclude_managed_identity_credential": "true"}, {"credential": OneToken()}


class OneToken:
    """A credential that gives one token, as objects of ``azure.identity`` do."""

    token = "token"
    expires_on = 4e9

    def get_token(self, *_: str) -> OneToken:
        """Return it."""
        return self


def tokens_by_az(folder: Path) -> None:
    """Write a program ``az`` that gives a token, as after ``az login``."""
    program = folder / "az"
    program.write_text(
        "#!/bin/sh\n"
        """echo '{"accessToken": "token", "expiresOn": "2999-01-01 00:00:00.000000"}'\n"""
    )
    program.chmod(0o755)


class GcsPlace:
    """A table in an emulated bucket.

    What something is below of is a directory, as is a placeholder or a folder.
    """

    def __init__(self, emulator: GcsEmulatorThread, rate: int = 1500) -> None:
        self._emulator = emulator
        self.url = "gs://data/table"
        self.rate = rate
        self._saved: GcsService | None = None
        self.storage = {"endpoint_url": emulator.endpoint, "token": "anon"}
        self.arguments = tuple(
            word for key, value in self.storage.items() for word in ("-s", f"{key}={value}")
        )

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write files."""

        def write(it: GcsEmulator) -> None:
            for name, data in files.items():
                it.service.insert("data", f"table/{name}", data)

        self._emulator.do(write)

    def save(self) -> None:
        """Remember the bucket as it is."""
        self._saved = self._emulator.do(lambda it: it.service.copy())

    def restore(self) -> None:
        """Make it so again; objects keep their generations."""
        assert self._saved is not None
        buckets = self._saved.copy()._buckets
        self._emulator.do(lambda it: setattr(it.service, "_buckets", buckets))

    def busy(self) -> bool:
        """Return whether the store may still execute requests of a client."""
        return bool(self._emulator.do(lambda it: it.stats()["connections"]))

    def tree(self) -> dict[str, str]:
        """Return all that is there."""
        found = self._emulator.do(lambda it: bucket_tree(it.service, "data"))
        below = {
            path.removeprefix("/table/"): item.data
            for path, item in found.items()
            if path.startswith("/table/")
        }
        files = {path: data for path, data in below.items() if data is not None}
        return {**dict.fromkeys(below, "/"), **tree_of(files)}

    def names(self) -> list[str]:
        """Return the paths of all files, also while they move."""
        return [path for path, said in self.tree().items() if said != "/"]

    def marker(self) -> bytes | None:
        """Return what ``_SUCCESS`` says."""
        found = self._emulator.do(lambda it: bucket_tree(it.service, "data"))
        return found["/table/_SUCCESS"].data if "/table/_SUCCESS" in found else None


def _walk(table: Node | None) -> list[tuple[str, str]]:
    waiting = [("", table)] if table is not None else []
    found: list[tuple[str, str]] = []
    while waiting:
        path, node = waiting.pop()
        if path:
            found.append((path, "/" if node.is_dir else digest(node.read())))
        waiting += [(f"{path}/{name}".lstrip("/"), _) for name, _ in (node.children or {}).items()]
    return found


async def _commit_tasks(
    place: Place, written: Mapping[int, Mapping[str, bytes]], committer: str | None
) -> None:
    opened = JobRef(place.url, JOB, storage_options=place.storage, committer=committer).open()
    async with opened as made:
        await made.setup_job()
        job = Job(made)

        async def run(task: int) -> None:
            async with job.task(task) as running:
                for name, data in written[task].items():
                    await running.put(name, data)

        await asyncio.gather(*map(run, written))


def prepare(
    place: Place, tasks: int = 40, files: int = 25, *, committer: str | None = None
) -> dict[int, dict[str, bytes]]:
    """Fill the table, commit the tasks of a job, save all that; return what the tasks wrote."""
    place.fill(OLD)
    written = new_files(tasks, files)
    asyncio.run(_commit_tasks(place, written, committer))
    place.save()
    return written
