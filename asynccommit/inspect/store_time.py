"""The host with a store's clock, for ages that decide what is deleted."""

from __future__ import annotations

from dataclasses import replace

from asynccommit.commit.driver.owners import on_store_time
from asynccommit.errors import DeniedError
from asynccommit.runtime.host import Host
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address

S3_SKEW = 900.0
"""Maximum clock error in seconds: S3 rejects requests with a larger one."""


async def on_clock_of(store: Store, place: Address, host: Host) -> Host:
    """Return the host with the store's clock, by a file that is deleted.

    A user of S3 may have the right to abort uploads and none to write. There the machine's clock
    tells, put back by the error that S3 accepts.

    Args:
        store: the store.
        place: a directory that exists, if the store has directories.
        host: clock and ids.

    Raises ``StoreError``.
    """
    try:
        return await on_store_time(
            host, store, place.child(f"_asynccommit-clock-{host.new_id()}").path
        )
    except DeniedError as error:
        if store.traits.multipart is None:
            text = f"{error.detail}. The file tells the store's time: be a user who may write there"
            raise DeniedError(error.op, error.path, text) from error
        return replace(host, now=lambda: host.now() - S3_SKEW)
