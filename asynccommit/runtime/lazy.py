"""Public names that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import ismodule

from asynccommit.former import Former, former_names


def lazy_names(
    package: str,
    modules: Mapping[str, Sequence[str]],
    former: Mapping[str, Former] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for lazily imported names.

    No name may be that of a module beside it: the import of that module would replace it.
    ``__dir__`` lists ``__all__`` and the modules, without what the package imports for itself.

    Args:
        package: its dotted name.
        modules: module, relative to the package or by its full name -> names that it has.
        former: former names, which warn; see ``former_names``.
    """
    root = package.partition(".")[0]
    homes = {it: it if it.partition(".")[0] == root else f"{package}.{it}" for it in modules}
    places = {name: homes[module] for module, names in modules.items() for name in names}

    get_former = former_names(package, former or {}, stacklevel=4)

    def get(name: str) -> object:
        if name not in places:
            return get_former(name)
        found: object = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        found = vars(sys.modules[package])
        own = {name for name, value in found.items() if name[0] == "_" or ismodule(value)}
        return sorted(own | {*found["__all__"]})

    return get, names
