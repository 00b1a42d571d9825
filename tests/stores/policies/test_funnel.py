"""The funnel forwards every method of the contract and composes the policies in their order."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from asynccommit.errors import NotFoundError
from asynccommit.stores.base import BulkStore, Info, Kind, OwnedStore, Page, Store, Traits
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.policies.funnel import Call, Op, Wrapped

METHODS = [
    name
    for contract in (Store, BulkStore, MultipartStore)
    for name, member in vars(contract).items()
    if inspect.iscoroutinefunction(member) and name != "aclose"
]


class Echo:
    """A store that notes each request with its arguments, bound by name."""

    traits = Traits("echo")

    def __init__(self) -> None:
        self.closed = 0
        self.asked: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Callable[..., Awaitable[None]]:
        if name not in METHODS:
            raise AttributeError(name)
        signature = inspect.signature(getattr(MultipartStore, name))

        async def echo(*args: object, **options: object) -> None:
            self.asked.append({"method": name, **signature.bind(None, *args, **options).arguments})

        return echo

    async def aclose(self) -> None:
        """Count the closing."""
        self.closed += 1


class Note:
    """A policy that notes what passes it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name = name
        self._log = log

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""

        async def noted(op: Op) -> Any:
            self._log.append(f"{self._name}: {op!r}")
            return await call(op)

        return noted


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("defaults", [True, False])
async def test_every_method_is_forwarded_with_all_its_arguments(name: str, defaults: bool) -> None:
    """Each argument of each method of the contract, given or defaulted, reaches the store."""
    parameters = list(inspect.signature(getattr(MultipartStore, name)).parameters.values())[1:]
    given: dict[str, object] = {}
    for parameter in parameters:
        if parameter.default is inspect.Parameter.empty:
            given[parameter.name] = f"the {parameter.name}"
        elif not defaults:
            given[parameter.name] = (
                not parameter.default if isinstance(parameter.default, bool) else "given"
            )
    expected = {p.name: given.get(p.name, p.default) for p in parameters}
    log: list[str] = []
    echo: Any = Echo()
    store = Wrapped(echo, Note("policy", log))

    await getattr(store, name)(**given)

    assert echo.asked == [{"method": name, "self": None, **expected}]
    assert len(log) == 1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_signature_of_the_contract(name: str) -> None:
    """Names, kinds and defaults of parameters are those of the protocol."""
    contract = OwnedStore if name == "mkdir" else MultipartStore
    expected = inspect.signature(getattr(contract, name))
    assert inspect.signature(getattr(Wrapped, name)) == expected


def test_traits_are_those_of_the_store() -> None:
    """The traits pass through."""
    echo: Any = Echo()
    assert Wrapped(echo).traits is echo.traits


async def test_the_first_policy_is_outermost() -> None:
    """A call passes the policies in the order in which they are named."""
    log: list[str] = []
    echo: Any = Echo()
    store = Wrapped(echo, Note("outer", log), Note("inner", log))
    await store.rename("/a", "/b", replace=True)
    assert log == [f"{name}: rename('/a', '/b', replace=True)" for name in ("outer", "inner")]


REPEATABLE: list[tuple[Callable[[Store], Awaitable[object]], bool, bool]] = [
    (lambda store: store.head("/a"), False, True),
    (lambda store: store.list("/a"), False, True),
    (lambda store: store.get("/a", 1), False, True),
    (lambda store: store.put("/a", b""), True, True),
    (lambda store: store.put("/a", b"", overwrite=False), True, False),
    (lambda store: store.delete("/a"), True, True),
    (lambda store: store.delete_tree("/a"), True, True),
    (lambda store: store.copy("/a", "/b"), True, False),
    (lambda store: store.copy("/a", "/b", overwrite=True), True, True),
    (lambda store: store.rename("/a", "/b"), True, False),
    (lambda store: store.rename("/a", "/b", replace=True), True, False),
    (lambda store: store.mkdir("/a"), True, True),
    (lambda store: store.sync("/a"), True, True),
]


@pytest.mark.parametrize("request_of, writes, repeatable", REPEATABLE)
async def test_ops_say_what_they_are(
    request_of: Callable[[Store], Awaitable[object]], writes: bool, repeatable: bool
) -> None:
    """Each request is marked as a read or a write and as repeatable or not, with its path."""
    seen: list[Op] = []

    class Keep:
        def around(self, call: Call) -> Call:
            async def keep(op: Op) -> Any:
                seen.append(op)
                return await call(op)

            return keep

    echo: Any = Echo()
    await request_of(Wrapped(echo, Keep()))
    assert [(op.path, op.writes, op.repeatable) for op in seen] == [("/a", writes, repeatable)]


async def test_errors_and_answers_pass_unchanged() -> None:
    """What the store returns or raises is what the caller gets, the very object."""
    error = NotFoundError("head", "/a")
    page = Page((Info("/a/b", Kind.FILE),))

    class Fixed(Echo):
        async def head(self, path: str) -> Info:
            raise error

        async def list(self, path: str, token: str | None = None) -> Page:
            return page

    fixed: Any = Fixed()
    store = Wrapped(fixed)
    assert await store.list("/a") is page
    with pytest.raises(NotFoundError) as caught:
        await store.head("/a")
    assert caught.value is error


async def test_closing_closes_the_store() -> None:
    """Closing reaches the store through every wrapping."""
    echo: Any = Echo()
    await Wrapped(Wrapped(echo)).aclose()
    assert echo.closed == 1


def test_an_op_shows_no_data() -> None:
    """The text of an operation has its arguments, but only the size of what it writes."""
    op = Op("put", ("/a", b"secret"), True, True, {"overwrite": True})
    assert repr(op) == "put('/a', <6 bytes>, overwrite=True)"
