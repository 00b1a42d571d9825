"""Send requests with hdfs-native, and translate its errors."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, TypeVar

from asynccommit.errors import OptionError, StoreError, UnsupportedError
from asynccommit.stores.hdfs.errors import HdfsRequest, message_of, translate
from asynccommit.stores.hdfs.options import HdfsSettings

T = TypeVar("T")

_THREADS = 16  # for contents and listings
_PATIENCE = 10  # times the timeout of a request to the NameNode
_KEPT: dict[Hashable, tuple[Any, Any]] = {}
# What ends a task or the process, and is no error of the library.
_PASSED_ON = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit, StoreError)


class HdfsClient:
    """The two clients of hdfs-native, for one event loop.

    Requests to the NameNode alone go through the asyncio client. Its reads, writes and listings
    would wait inside the library where no runtime of it runs, or pass through the event loop for
    each entry; they go through the blocking client, on threads.

    Args:
        settings: the NameNodes and how to reach them.

    Raises:
        OptionError: the library refuses the configuration.
        UnsupportedError: hdfs-native is missing.
    """

    def __init__(self, settings: HdfsSettings) -> None:
        native = _native()
        try:
            self._asyncio, self._blocking = _clients(native, settings)
        except (RuntimeError, OSError) as error:
            raise OptionError(
                f"{settings.name} cannot be opened: {message_of(error)}; check the URL, "
                "HADOOP_CONF_DIR and the storage options"
            ) from error
        self.options = native.WriteOptions
        self._timeout = settings.timeout
        self._group = settings.group
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="asynccommit-hdfs")

    async def ask(self, request: HdfsRequest, call: Callable[[Any], Awaitable[T]]) -> T:
        """Return the response to one request to the NameNode.

        Raises ``StoreError``.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await call(self._asyncio)
        except _PASSED_ON:
            raise
        except BaseException as error:  # a panic of the library is no Exception
            raise translate(request._replace(group=self._group), error) from error

    async def work(self, request: HdfsRequest, call: Callable[[Any], T]) -> T:
        """Return the result of a function of the blocking client.

        Raises ``StoreError``.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout * _PATIENCE):
                return await loop.run_in_executor(self._threads, call, self._blocking)
        except _PASSED_ON:
            raise
        except BaseException as error:
            raise translate(request._replace(group=self._group), error) from error

    async def aclose(self) -> None:
        """Let the threads end; a call under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _clients(native: Any, settings: HdfsSettings) -> tuple[Any, Any]:
    """Return the asyncio client and the blocking one.

    They are the same for the same settings, and are never freed. To free one ends its threads and
    waits for them with Python's lock held; a thread that is about to report a result waits for that
    lock, and the process would hang. After a fork the threads are missing, so a child has clients
    of its own.
    """
    made = settings.url, dict(settings.config), settings.config_dir
    key = (
        os.getpid(),
        (settings.url, settings.config_dir, settings.identity),
        tuple(sorted(settings.config.items())),
        tuple(sorted(settings.kerberos.items())),
    )
    if key not in _KEPT:
        found = (
            native.AsyncClient(*made, **settings.kerberos),
            native.Client(*made, **settings.kerberos),
        )
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
