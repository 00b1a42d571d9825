"""Public names that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import ismodule


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for lazily imported names.

    No name may be that of a module beside it: the import of that module would replace it.
    ``__dir__`` lists ``__all__`` and the modules, without what the package imports for itself.

    Args:
        package: its dotted name.
        modules: module, relative to the package -> names that it has.
    """
    places = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        found = vars(sys.modules[package])
        own = {name for name, value in found.items() if name[0] == "_" or ismodule(value)}
        return sorted(own | {*found["__all__"]})

    return get, names
