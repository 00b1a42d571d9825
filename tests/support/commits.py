"""Commits that several owners go on with, on the model of a store and on a local directory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.context import CommitContext
from asynccommit.commit.layouts.layout import Layout, TaskCommit
from asynccommit.commit.ownership.status import read_state
from asynccommit.commit.ownership.takeover import take_over
from asynccommit.errors import LeaseLostError
from asynccommit.options.job import Mode, Options
from asynccommit.runtime.host import Host
from asynccommit.stores.policies.funnel import Call, Op, Policy, Wrapped
from asynccommit.testing.models.crashes import Crashed, Process
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.crashes import EPOCH, LocalWorld, SimWorld
from tests.support.faults import apart, method_of

JOB = "job_202601010000_0001"
OTHER = "job_202601010000_0002"
DEST = "/table"

World = SimWorld | LocalWorld


async def open_site(kind: str, root: Path) -> Site:
    """Return an empty site, ``local`` or ``sim``."""
    if kind == "sim":
        return Site(SimWorld.new())
    root.mkdir()
    return Site(LocalWorld(root))


class Site:
    """A store with a table on it, and the machines whose processes commit to it.

    Paths are those of the world: ``/table/day=1/f`` wherever the table really is. ``alive`` says
    of a process whether it runs; of others nothing is known. ``skew`` is what the clocks of all
    machines are ahead of the store's.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.alive: dict[str, bool] = {}
        self.skew = 0.0
        self._ids = count(1)

    def host(self, process: str = "", machine: str = "driver-0") -> Host:
        """Return the host of one process."""
        return Host(
            now=lambda: EPOCH + self.world.time() + self.skew,
            new_id=lambda: f"id-{next(self._ids):04}",
            rng=random.Random(0),
            name=machine,
            user="alice",
            clock=self.world.time,
            process=process,
            is_running=self.alive.get,
        )

    def job(
        self,
        *policies: Policy,
        job_id: str = JOB,
        attempt: int = 0,
        process: str = "1.one",
        machine: str = "driver-0",
        **options: Any,
    ) -> ManifestCommitter:
        """Return the committer of one process; policies go innermost."""
        store = Wrapped(self.world.store(Process("store")), *apart(policies))
        layout = Layout(self.world.address(DEST), job_id, attempt)
        return ManifestCommitter(store, layout, Options(**options), self.host(process, machine))

    @property
    def saves_plan(self) -> tuple[str, str]:
        """Return what ``At`` is told to do something as a commit saves its plan."""
        drafts = self.job().store.traits.drafts
        return ("mkdir", "commit-epoch") if drafts else ("put", "commit-plan")

    async def close(self) -> None:
        """End the threads of a local store."""
        if isinstance(self.world, LocalWorld):
            await self.world.aclose()

    def path(self, path: str) -> str:
        """Return the path on the store."""
        return self.world.address(path).path

    def bare(self, path: str) -> str:
        """Return the path of the world for one on the store."""
        return path.removeprefix(self.path("/").rstrip("/"))

    def place(self, files: Mapping[str, str]) -> None:
        """Put files; a name that ends in ``/`` is a directory."""
        for path, text in files.items():
            self.world.place(path, text)

    async def intrude(self, files: Mapping[str, str], *gone: str) -> None:
        """Put files, and delete others before, while a job is at work."""
        store = self.world.store(Process("stranger"))
        for path in gone:
            await store.delete(self.path(path))
        if isinstance(self.world, LocalWorld):
            await asyncio.to_thread(self.place, files)
        else:
            self.place(files)

    def tree(self, *hidden: str) -> dict[str, str | None]:
        """Return all that is there but what is below ``hidden``; directories are ``None``."""
        return {
            path: None if item.data is None else item.data.decode()
            for path, item in self.world.tree().items()
            if not any(f"{path}/".startswith(f"{other}/") for other in hidden)
        }

    def files(self) -> dict[str, str]:
        """Return the files of the table that belong to no job's work, by their names in it."""
        return {
            path.removeprefix(f"{DEST}/"): text
            for path, text in self.tree(f"{DEST}/_temporary", f"{DEST}/_SUCCESS").items()
            if text is not None and path.startswith(f"{DEST}/")
        }

    async def left_now(self) -> list[str]:
        """Return everything below ``_temporary``, while a job is at work."""
        if isinstance(self.world, LocalWorld):
            return await asyncio.to_thread(self.left)
        return self.left()

    def left(self) -> list[str]:
        """Return everything below ``_temporary``."""
        return [path for path in self.tree() if path.startswith(f"{DEST}/_temporary/")]

    async def task(
        self,
        job: ManifestCommitter,
        task: int,
        files: Mapping[str, str],
        absolute: Mapping[str, str] | None = None,
        attempt: int = 0,
    ) -> TaskCommit:
        """Set up, write and commit a task; ``absolute`` are files for places elsewhere."""
        task_id, attempt_id = job.layout.ids(task, attempt)
        base = self.bare(await job.setup_task(attempt_id))
        self.place({f"{base}/{name}": text for name, text in files.items()})
        commit = await job.commit_task(task_id, attempt_id)
        named = {}
        for number, (dest, text) in enumerate((absolute or {}).items()):
            staged = f"{job.layout.absolute_dir}/{attempt_id}/{number}"
            self.place({self.bare(staged): text})
            named[job.layout.url(staged)] = self.world.address(dest).encode()
        return replace(commit, absolute=named)

    async def cut(
        self,
        files: Mapping[str, str],
        at: Dies,
        *,
        mode: Mode = Mode.APPEND,
        overwrite: Sequence[str] = (),
        **options: Any,
    ) -> ManifestCommitter:
        """Leave a commit as a process leaves it that dies at a request; return its committer."""
        job = await self.ready(files, at, **options)
        with suppress(BaseException):
            await job.commit_job(mode=mode, overwrite=overwrite)
        assert at.dead
        return job

    async def cut_commit(self, at: Dies, *policies: Policy, **options: Any) -> None:
        """Commit a job that is set up in a process that dies at a request."""
        with suppress(BaseException):
            await self.job(at, *policies, **options).commit_job()
        assert at.dead

    async def cut_resume(self, at: Dies, **options: Any) -> None:
        """Resume the commit in a process that dies at a request."""
        with suppress(BaseException):
            await self.job(at, **options).resume_job()
        assert at.dead

    async def ready(
        self, files: Mapping[str, str], *policies: Policy, **options: Any
    ) -> ManifestCommitter:
        """Return a job whose only task has committed ``files``."""
        job = self.job(*policies, **options)
        await job.setup_job()
        await self.task(job, 0, files)
        return job


def run_of(job: ManifestCommitter) -> CommitContext:
    """Return what the stages of a job are given."""
    return job._run()


class Lost:
    """A lease that is lost. See ``Held``."""

    is_held = True

    def check(self) -> None:
        """Raise ``LeaseLostError``."""
        raise LeaseLostError("job", "stage", (), "gone")

    def close(self) -> None:
        """Nothing is left to close."""

    def free(self) -> None:
        """Nothing is left to free."""

    async def end(self) -> None:
        """Nothing is left to end."""


async def own(job: ManifestCommitter, *, force: bool = False) -> CommitContext:
    """Take the commit that is there over, and return the run of its new owner."""
    standing = await read_state(job.store, job.layout)
    assert standing is not None
    lease = await take_over(run_of(job), standing, force=force)
    lease.forget()
    return lease.run


class At:
    """A policy that does something once, when a chosen request is about to be sent, or is done.

    Args:
        name: the store method.
        match: part of the path of the request, or of the path it moves to.
        act: what to do.
        after: do it when the request is done.
        skip: how many matching requests pass before.
    """

    def __init__(
        self,
        name: str,
        match: str,
        act: Callable[[], Awaitable[object]],
        *,
        after: bool = False,
        skip: int = 0,
    ) -> None:
        self.name = name
        self.match = match
        self.act: Callable[[], Awaitable[object]] | None = act
        self.after = after
        self.skip = skip

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def acting(op: Op) -> Any:
            act = self._due(op)
            if act is not None and not self.after:
                await act()
            answer = await call(op)
            if act is not None and self.after:
                await act()
            return answer

        return acting

    def _due(self, op: Op) -> Callable[[], Awaitable[object]] | None:
        if method_of(op) != self.name or self.match not in paths_of(op):
            return None
        if self.skip:
            self.skip -= 1
            return None
        act, self.act = self.act, None
        return act


class Dies:
    """A policy after whose chosen request nothing is sent any more, as of a process that died.

    Args:
        name: the store method.
        match: part of the path of the request, or of the path it moves to.
        after: the request takes effect.
        skip: how many matching requests pass before.
    """

    def __init__(self, name: str, match: str, *, after: bool = False, skip: int = 0) -> None:
        self.name = name
        self.match = match
        self.after = after
        self.skip = skip
        self.dead = False

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def mortal(op: Op) -> Any:
            if not self.dead and method_of(op) == self.name and self.match in paths_of(op):
                self.dead = self.skip == 0
                self.skip -= 1
                if self.dead and self.after:
                    await call(op)
            if self.dead:
                raise Crashed
            return await call(op)

        return mortal


def in_virtual_time(test: Callable[[Site], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Return a test on a model of a store, whose hours of waiting take no time."""

    async def main() -> None:
        await test(Site(SimWorld.new()))

    def run() -> None:
        run_virtual(main())

    run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
    return run


def paths_of(op: Op) -> str:
    """Return the path of a request, and after a blank the one that it moves to."""
    return " ".join(arg for arg in op.args[:2] if isinstance(arg, str))


def request_of(op: Op) -> tuple[str, str]:
    """Return the method and the paths of a request.

    A draft that is put in place is the write of its destination.
    """
    name = method_of(op)
    return name, op.args[1] if op.name == "rename" != name else paths_of(op)


def changes(seen: list[Op]) -> list[tuple[str, str]]:
    """Return the requests that change something, with their paths."""
    return [request_of(op) for op in seen if op.writes]
