"""Open the store that suits the namespace of an account."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from asynccommit.runtime.host import this_host
from asynccommit.stores.adls.hadoop import HIERARCHICAL
from asynccommit.stores.adls.options import read_settings
from asynccommit.stores.adls.store import AdlsStore
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address

_FLAT = "asynccommit.stores.adls.flat.store"  # imported only if an option asks for it


def open_account(address: Address, options: Mapping[str, Any] | None = None) -> Store:
    """Return the store of a container: of a flat account if an option says so.

    The service is not asked here: what a store can do must be known before its first request.

    Raises:
        OptionError: an option or the address cannot be used.
        UnsupportedError: a library is missing.
    """
    options = options or {}
    if not any(HIERARCHICAL in name for name in options):
        return AdlsStore(address, options)
    settings = read_settings(address, options, environ=os.environ, now=this_host().now)
    if settings.hierarchical is not False:
        return AdlsStore(address, options)
    opened: Store = import_module(_FLAT).FlatBlobStore(address, options)
    return opened
