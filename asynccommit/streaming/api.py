"""Open the log of a streaming file sink from asyncio programs.

See ``SinkLog``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from os import fspath
from typing import Annotated, Any

from asynccommit.options.checked import HIDDEN, Url, checked
from asynccommit.runtime.host import this_host
from asynccommit.stores.registry import StoreSettings, close_store, open_store
from asynccommit.stores.urls import parse_url
from asynccommit.streaming.log import Added, Discarded, SinkFile, SinkLog, SinkLogSettings

__all__ = ["Added", "Discarded", "SinkFile", "SinkLog", "SinkLogSettings", "open_sink_log"]


@checked
@asynccontextmanager
async def open_sink_log(
    table: Url,
    settings: SinkLogSettings | None = None,
    *,
    storage_options: Annotated[Mapping[str, Any] | None, HIDDEN] = None,
) -> AsyncIterator[SinkLog]:
    """Open the log of a table; the log need not exist yet.

    Args:
        table: URL or absolute path of the table, with the scheme that its readers use: the entries
            contain it.
        settings: settings of the log; ``None`` for Spark's defaults.
        storage_options: options of the store, under fsspec's names.

    Raises:
        UrlError: the URL cannot be parsed.
        OptionError: an option is invalid, or the table is inside a log.
        UnsupportedError: there is no store for the scheme, or it cannot keep a log.
    """
    dest, host = parse_url(fspath(table)), this_host()
    store = open_store(dest, StoreSettings(rng=host.rng, options=storage_options or {}))
    async with AsyncExitStack() as opened:
        opened.push_async_callback(close_store, store)
        yield SinkLog(store, dest, settings, host=host)
