"""Stores that another part of this process opens.

Spark's part of this package provides ``jvm``: any filesystem that the driver's JVM can open. It is
used if the option ``asynccommit.store`` names it, and for what no store here can open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.stores.base import Store
from asynccommit.stores.urls import Address

STORE_OPTION = "asynccommit.store"
"""The storage option that names the store: ``jvm``, or ``native`` for one of this package."""

JVM = "jvm"
"""The value of that option for a filesystem of this process's JVM."""

Opener = Callable[[Address, Mapping[str, Any]], Store]

_NATIVE = "native"
_OPENERS: dict[str, Opener] = {}
# Scheme -> the module that its store needs, where the JVM can stand in for it.
_NEEDED = {"hdfs": "hdfs_native", "viewfs": "hdfs_native"}


def provide(name: str, opener: Opener) -> None:
    """Have ``opener`` open the stores of a name; the last one counts."""
    _OPENERS[name] = opener


def opener_for(address: Address, options: Mapping[str, Any], known: bool) -> Opener | None:
    """Return what opens a store; ``None`` for one of this package.

    Args:
        address: the place.
        options: the storage options.
        known: whether this package has a store for the scheme.

    Raises:
        OptionError: the option names no such store.
        UnsupportedError: the option asks for a JVM, and this process has none.
    """
    name = str(options.get(STORE_OPTION) or "").strip().lower()
    if name not in ("", JVM, _NATIVE):
        raise OptionError(f"{STORE_OPTION} is {name[:100]!r}: expected jvm or native")
    opener = _OPENERS.get(JVM)
    if name == JVM and opener is None:
        raise UnsupportedError(
            f"{STORE_OPTION} is jvm, and this process has no Spark session: call "
            "asynccommit.spark.configure(spark) first. The command starts a JVM by itself with "
            f"-s {STORE_OPTION}=jvm"
        )
    needed = _NEEDED.get(address.scheme)
    usable = known and (needed is None or find_spec(needed) is not None)
    return None if name == _NATIVE or (usable and name != JVM) else opener
