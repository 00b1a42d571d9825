"""Select the part of the tests to run: a quick one that proves each behaviour, the rest, or all.

The quick selection is the same every day, so that a test which passed yesterday fails today only
because of a change. The rest is what the quick selection leaves out. Of long products of
parameters, and of long tests, which have the marker ``every(days)``, it has those that are due:
each case on one of so many days, or with ``every(days, number)``, where tests share a program, all
of them on that one. All has every one.

A test with the marker ``full`` is not part of the quick selection. Of a parametrized test with
the marker ``sample(n)`` the selection has ``n`` cases, and with ``rotate("act")`` one ``act`` for
each case of the other parameters, or with ``rotate("act", keep=n)`` so many. A loop asks
``amount``, and the marker ``more`` runs its test in the rest again, with the full amount. A run
says the day of its rest, and ``ASYNCCOMMIT_TEST_DAY`` repeats it.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

ALL, QUICK, REST = "all", "quick", "rest"
_PART, _DAY = "ASYNCCOMMIT_TEST_PART", "ASYNCCOMMIT_TEST_DAY"


def day() -> int:
    """Return the number that draws samples: today's in the rest, or that of the environment.

    The quick selection draws the same ones every day.
    """
    today = int(os.environ.setdefault(_DAY, str(datetime.now(UTC).toordinal())))
    return 0 if os.environ.get(_PART) == QUICK else today


def amount(variable: str, *, quick: int, full: int) -> int:
    """Return the number that an environment variable says, or the default of the part."""
    return int(os.environ.get(variable, quick if os.environ.get(_PART) == QUICK else full))


def set_part(part: str) -> None:
    """Say which part runs, for this process and those that it starts."""
    os.environ[_PART] = part
    day()


def in_part(items: list[pytest.Item], part: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items of a part, and the others, both in their order."""
    if part == ALL:
        return items, []
    kept = _quick(items)
    if part == REST:
        kept = {it for it in _due(items) if it not in kept or it.get_closest_marker("more")}
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def _quick(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the items of the quick selection."""
    found: set[pytest.Item] = set()
    groups: defaultdict[tuple[str, object], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("full"):
            groups[item.nodeid.partition("[")[0], _drawn_from(item)].append(item)
    numbers: Counter[str] = Counter()
    for (function, _), group in groups.items():
        count = min(_count(group[0]), len(group))
        found.update(random.Random(f"{function} {numbers[function]}").sample(group, count))
        numbers[function] += 1
    return found


def _due(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the items that are due; those of a function are spread over days."""
    functions: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    for function, cases in functions.items():
        rng = random.Random(function)
        # Cases in their order would have some value of a parameter on the same days always.
        for number, item in enumerate(rng.sample(cases, len(cases)), rng.randrange(1_000)):
            every = item.get_closest_marker("every")
            days, due = (*every.args, number)[:2] if every else (1, 0)
            if (day() - due) % days == 0:
                yield item


def _count(item: pytest.Item) -> int:
    """Return how many are drawn of the cases that an item is one of."""
    if sample := item.get_closest_marker("sample"):
        return int(sample.args[0])
    rotate = item.get_closest_marker("rotate")
    return int(rotate.kwargs.get("keep", 1)) if rotate else 1


def _drawn_from(item: pytest.Item) -> object:
    """Return what the cases of a function have in common of which some are drawn."""
    if item.get_closest_marker("sample"):
        return None
    rotate = item.get_closest_marker("rotate")
    if rotate and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        # Not every value can be compared or has a text; cases share the objects.
        return tuple((k, id(v)) for k, v in item.callspec.params.items() if k not in rotate.args)
    return item.nodeid
