"""Send requests with hdfs-native, and translate its errors."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar

from asynccommit.errors import (
    OptionError,
    OutcomeUnknownError,
    StoreError,
    UnsupportedError,
)
from asynccommit.stores.base import Move, Renamed
from asynccommit.stores.hdfs.errors import HdfsRequest, message_of, translate
from asynccommit.stores.hdfs.options import HdfsSettings

T = TypeVar("T")

BATCH = 32
"""Renames of one thread, one after another."""

QUICK = 64
"""Threads for requests to the NameNode."""

SLOW = 16
"""Threads for contents and listings."""

_PAUSES = (0.002, 0.003, 0.005, 0.005, 0.01, 0.01, 0.02, 0.04, 0.1, 0.2)
"""Seconds between two looks at a file that is being closed."""
_PATIENCE = 10  # times the timeout of a request to the NameNode
_KEPT: dict[Hashable, Any] = {}
# What ends a task or the process, and is no error of the library.
_PASSED_ON = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, StoreError)


class HdfsRequests(Protocol):
    """The requests that the store sends; see ``HdfsClient``."""

    @property
    def options(self) -> Any:
        """The class of the options of a new file."""
        ...

    async def ask(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """Return the response to one request to the NameNode."""
        ...

    async def work(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """Return the result of a function that reads, writes or lists."""
        ...

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """Rename files one after another, as long as none fails."""
        ...

    def close(self, client: Any, writer: Any, path: str, size: int) -> None:
        """Close a new file, in a function of ``work``.

        Args:
            client: the blocking client.
            writer: wrote the file.
            path: the file, which nobody else knows.
            size: number of bytes that were written.
        """
        ...

    async def aclose(self) -> None:
        """Release what is open."""
        ...


class HdfsClient:
    """The blocking client of hdfs-native on threads, for one event loop.

    The asyncio client of version 0.14.7 can hang the process if a connection breaks: it wakes the
    event loop, which needs Python's lock, with a lock of its own held. It cannot wait between two
    rounds over the NameNodes either.

    Args:
        settings: the NameNodes and how to reach them.

    Raises:
        OptionError: the library refuses the configuration.
        UnsupportedError: hdfs-native is missing.
    """

    def __init__(self, settings: HdfsSettings) -> None:
        native = _native()
        try:
            self._client = _client(native, settings)
        except (RuntimeError, OSError) as error:
            raise OptionError(
                f"{settings.name} cannot be opened: {message_of(error)}; check the URL, "
                "HADOOP_CONF_DIR and the storage options"
            ) from error
        self.options: Any = native.WriteOptions
        self._timeout = settings.timeout
        self._group = settings.group
        threads = partial(ThreadPoolExecutor, thread_name_prefix="asynccommit-hdfs")
        self._quick = threads(min(settings.workers, QUICK))
        self._slow = threads(SLOW)
        self._closing = threads(SLOW)

    async def ask(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """Return the response to one request to the NameNode.

        Raises ``StoreError``.
        """
        return await self._run(self._quick, self._timeout, request, call)

    async def work(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """Return the result of a function that reads, writes or lists.

        Raises ``StoreError``.
        """
        return await self._run(self._slow, self._timeout * _PATIENCE, request, call)

    async def rename_many(self, pairs: Sequence[Move]) -> Renamed:
        """Rename files one after another in one thread, as long as none fails.

        A hop to a thread costs more than a rename. See ``BatchStore.rename_many``.
        """
        request = HdfsRequest("rename", pairs[0][0], writes=True, new=True, group=self._group)
        try:
            done, error = await self._run(self._quick, self._timeout, request, _renamed(pairs))
        except OutcomeUnknownError as unknown:  # the thread may go on; each is asked for alone
            return 0, unknown
        if error is None:
            return done, None
        return done, translate(request._replace(path=pairs[done][0]), error)

    def close(self, client: Any, writer: Any, path: str, size: int) -> None:
        """Close a new file as soon as the NameNode lets it be closed.

        The library asks at once, which is usually before the DataNode has reported the block, and
        again only after half a second. Once the block is reported, a recovery of the lease closes
        the file. The second request of the library then finds it closed, in a thread of its own.
        """
        status = client.get_file_info(path)
        if not 0 < size < (status.blocksize or 0):  # no block to wait for, or more than one
            writer.close()
            return
        closing = self._closing.submit(writer.close)
        spent = size * (status.replication or 0)
        for pause in _PAUSES:
            if wait_for([closing], pause).done or _is_closed(client, path, spent):
                break
        else:
            closing.result()
        _raise_from(closing)

    async def _run(
        self,
        threads: ThreadPoolExecutor,
        timeout: float,
        request: HdfsRequest,
        call: Callable[[Any], T],
    ) -> T:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                return await loop.run_in_executor(threads, call, self._client)
        except _PASSED_ON:
            raise
        except BaseException as error:  # a panic of the library is no Exception
            raise translate(request._replace(group=self._group), error) from error

    async def aclose(self) -> None:
        """Let the threads end; a call under way is not waited for."""
        self._quick.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)
        self._closing.shutdown(wait=False)


def _is_closed(client: Any, path: str, spent: int) -> bool:
    """Close a file whose only block is complete; return whether it is closed.

    A block takes as much of the quota as it may grow to, until the writer has told the NameNode the
    length and the DataNode has reported the block. Before, a recovery of the lease would begin a
    recovery of the block, which takes seconds.

    Args:
        client: the blocking client.
        path: the file.
        spent: bytes that all replicas of its content take.
    """
    try:
        complete = client.get_content_summary(path).space_consumed == spent
        return complete and bool(client.recover_lease(path))
    except (RuntimeError, OSError):  # then the library closes it
        return False


def _raise_from(closing: Future[None]) -> None:
    """Raise the error of a close that has ended."""
    if closing.done():
        closing.result()


def _renamed(pairs: Sequence[Move]) -> Callable[[Any], tuple[int, BaseException | None]]:
    """Return what renames files until one fails."""

    def work(client: Any) -> tuple[int, BaseException | None]:
        for done, (source, dest, _) in enumerate(pairs):
            try:
                client.rename(source, dest, False)
            except _PASSED_ON:
                raise
            except BaseException as error:  # a panic of the library is no Exception
                return done, error
        return len(pairs), None

    return work


def _client(native: Any, settings: HdfsSettings) -> Any:
    """Return the blocking client, the same for the same settings.

    It is never freed, because that waits for its threads with Python's lock held. After a fork the
    threads are missing, so a child has a client of its own.
    """
    key = (
        os.getpid(),
        (settings.url, settings.config_dir, settings.identity),
        tuple(sorted(settings.config.items())),
        tuple(sorted(settings.kerberos.items())),
    )
    if key not in _KEPT:
        config = dict(settings.config)
        found = native.Client(settings.url, config, settings.config_dir, **settings.kerberos)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(found))  # also not at the end of the process
        _KEPT[key] = found
    return _KEPT[key]


def _native() -> Any:
    """Return the module of hdfs-native."""
    try:
        return import_module("hdfs_native")
    except ImportError:
        raise UnsupportedError(
            "hdfs-native is needed for hdfs: URLs: pip install 'asynccommit[hdfs]'"
        ) from None
