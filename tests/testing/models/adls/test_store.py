"""The model as a store: the rules of every store in good weather, and the errors of bad."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Info
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.account import AdlsAccount, AdlsLimits
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import Climate, Fault, FaultInjector
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.contract import (
    RULES,
    Rule,
    list_of_an_empty_directory_is_empty,
    name_of,
    names_in,
)
from tests.testing.models.adls.model import FS, A, Bench

Act = Callable[[SimStore], Awaitable[object]]

CLIMATES = {
    "calm": Climate(),
    "slow": Climate(latency=Latency("uniform", 0.0, 0.002)),
    "rules that miss": Climate((Fault("cut", path="never"),)),
}
LIMITS = {
    "small pages": AdlsLimits(page=7),
    "empty pages": AdlsLimits(empty_pages=True),
    "partial deletes": AdlsLimits(delete=2),
}
CASES = [
    (kind, rule)
    for kind in (*CLIMATES, *LIMITS)
    for rule in RULES
    # There the first page of every listing is empty, and has a token.
    if (kind, rule) != ("empty pages", list_of_an_empty_directory_is_empty)
]


@pytest.fixture
async def store(request: pytest.FixtureRequest) -> AsyncIterator[SimStore]:
    """The simulated store, in one way that it may answer."""
    kind: str = request.param
    ids = itertools.count()
    account = AdlsAccount("acct", now=time.time, new_id=lambda: f"id-{next(ids)}")
    account.create_filesystem(FS)
    account.limits = LIMITS.get(kind, AdlsLimits())
    weather = FaultInjector(random.Random(1), time.monotonic, CLIMATES.get(kind))
    opened = open_store(account, weather)
    yield opened
    await opened.aclose()


@pytest.mark.rotate("store", keep=2)
@pytest.mark.parametrize(
    "store,rule", CASES, ids=lambda _: _ if isinstance(_, str) else name_of(_), indirect=["store"]
)
async def test_contract(rule: Rule, store: SimStore) -> None:
    """The store keeps the rule."""
    await store.mkdir("/table")
    await rule(store, "/table")


def open_store(
    account: AdlsAccount, weather: FaultInjector | None = None, **more: object
) -> SimStore:
    """Return a store over an account."""
    options = {"account": account, "weather": weather, **more}
    return SimStore(Address("sim", f"{FS}@acct", "/"), options)


class Sky:
    """An account with a file, and a store upon it that one rule may strike."""

    def __init__(self, *faults: Fault, patience: float = 0.0) -> None:
        self.account = Bench()
        self.account.file("d/f", b"data")
        self.account.dir("e")
        self.weather = FaultInjector(random.Random(1), self.account.clock, Climate(faults))
        self.store = open_store(self.account, self.weather, patience=patience)

    @property
    def names(self) -> list[str]:
        """What is there, temporary files too."""
        return self.account.names()


def test_store_needs_an_account() -> None:
    """A store over nothing is refused when it is opened."""
    with pytest.raises(OptionError, match="account is None"):
        SimStore(Address("sim", "data@x", "/"), {})


def test_store_says_what_it_can() -> None:
    """It keeps tokens and etags, names its account, and tells what a put costs."""
    store = open_store(Bench())

    assert (store.traits.tokens, store.traits.etag_survives_rename) == (True, True)
    assert store.traits.account == "sim:acct"
    assert store.traits.costs == {"put": 4, "copy": 5, "draft": 2}
    assert not open_store(Bench(hns=False)).traits.atomic_directory_rename
    assert repr(store) == "SimStore(acct/data)"


async def test_put_and_rename_leave_their_token() -> None:
    """Head tells who brought a file where it is."""
    sky = Sky()
    info = await sky.store.put("/d/g", b"x", token=A)
    await sky.store.rename("/d/f", "/e/f", token="mine")

    assert info == await sky.store.head("/d/g")
    assert info.token == A
    assert (await sky.store.head("/e/f")).token == "mine"
    assert all(info.token is None for info in (await sky.store.list("/d")).entries)


async def test_rename_depends_on_the_etag() -> None:
    """Another etag is refused and nothing moves; the etag stays through a rename."""
    sky = Sky()
    etag = (await sky.store.head("/d/f")).etag
    with pytest.raises(PreconditionError):
        await sky.store.rename("/d/f", "/e/f", etag="0x8D1")
    await sky.store.rename("/d/f", "/e/f", etag=etag)

    assert (await sky.store.head("/e/f")).etag == etag


async def test_each_method_sends_what_it_costs() -> None:
    """The weather sees as many requests as the traits tell."""
    sky = Sky()
    await sky.store.put("/d/g", b"x")
    assert sum(sky.weather.requests.values()) == 4
    await sky.store.copy("/d/g", "/d/h")
    assert sum(sky.weather.requests.values()) == 9
    await sky.store.rename("/d/g", "/d/i")

    assert sum(sky.weather.requests.values()) == 10
    assert sky.weather.requests["rename"] == 3


async def test_delete_tree_goes_on_by_its_token() -> None:
    """It sends requests until all is gone, and does not mind another that helps."""
    sky = Sky()
    for number in range(5):
        sky.account.file(f"d/g{number}")
    sky.account.limits = AdlsLimits(delete=3)
    await sky.store.delete_tree("/d")

    assert sky.weather.requests["delete"] == 2
    assert sky.names == ["e"]


async def test_delete_tree_that_another_ends() -> None:
    """What is gone when the next request comes is deleted."""
    sky = Sky(Fault("slow", op="delete", delay=Latency(first=0.01), times=1))
    sky.account.file("d/g")
    sky.account.limits = AdlsLimits(delete=1)

    async def other() -> None:
        await asyncio.sleep(0.001)
        sky.account.limits = AdlsLimits()
        sky.account.delete(FS, "d", recursive=True)

    await asyncio.gather(sky.store.delete_tree("/d"), other())

    assert sky.names == ["e"]


async def test_the_root_is_there() -> None:
    """Making it is fine, deleting it is refused."""
    sky = Sky()
    await sky.store.mkdir("/")
    await sky.store.put("/f", b"")
    with pytest.raises(RejectedError):
        await sky.store.delete_tree("/")

    assert await names_in(sky.store, "/") == ["d", "e", "f"]


async def test_filesystem_that_is_missing() -> None:
    """It is no missing path, which callers would go on from."""
    sky = Sky()
    sky.account.delete_filesystem(FS)
    with pytest.raises(RejectedError, match="FilesystemNotFound"):
        await sky.store.head("/d")


async def test_parent_that_is_a_file() -> None:
    """A file below a file has no parent."""
    sky = Sky()
    with pytest.raises(NotFoundError):
        await sky.store.put("/d/f/g", b"x")
    with pytest.raises(NotFoundError):
        await sky.store.rename("/d/f", "/d/f/g")

    assert sky.names == ["d", "d/f", "e"]


async def test_put_that_fails_leaves_nothing() -> None:
    """The temporary file is deleted, whatever it was that failed."""
    for op in ("create", "append", "rename"):
        sky = Sky(Fault("before", op=op, code="AuthorizationFailure"))
        with pytest.raises(DeniedError):
            await sky.store.put("/d/g", b"x")
        assert sky.names == ["d", "d/f", "e"]


async def test_temporary_names_are_hidden_and_new() -> None:
    """Two sendings never share one, and listings leave them out."""
    sky = Sky(Fault("before", op="append"), Fault("cut_before", op="delete"))
    for _ in range(2):
        with pytest.raises(ThrottledError):
            await sky.store.put("/d/g", b"x", token=A)

    assert len(sky.names) == 5
    assert await names_in(sky.store, "/d") == ["f"]


async def test_temporary_file_that_another_deletes() -> None:
    """Nothing was changed, so the put may be sent again."""
    sky = Sky(Fault("slow", op="create", delay=Latency(first=0.01)))

    async def other() -> None:
        await asyncio.sleep(0.001)
        sky.account.delete(FS, "d", recursive=True)

    put, _ = await asyncio.gather(sky.store.put("/d/g", b"x"), other(), return_exceptions=True)

    assert isinstance(put, UnavailableError)
    assert sky.names == ["e"]


WRITES: dict[str, Act] = {
    "rename": lambda store: store.rename("/d/f", "/e/f"),
    "delete": lambda store: store.delete("/d/f"),
    "delete_tree": lambda store: store.delete_tree("/d"),
    "mkdir": lambda store: store.mkdir("/e/g"),
    "put": lambda store: store.put("/e/f", b"x"),
    "copy": lambda store: store.copy("/d/f", "/e/f"),
}
READS: dict[str, Act] = {
    "head": lambda store: store.head("/d/f"),
    "list": lambda store: store.list("/d"),
    "get": lambda store: store.get("/d/f", 100),
}
LOST = ("put", "copy")
"""These find out by themselves what became of a move that was not answered."""
OPS = {"put": "rename", "copy": "rename", "delete_tree": "delete", "get": "read"}


ANSWERS: list[tuple[str, str, type[StoreError], type[StoreError]]] = [
    ("before", "ServerBusy", ThrottledError, ThrottledError),
    ("before", "InternalError", OutcomeUnknownError, UnavailableError),
    ("before", "AuthenticationFailed", DeniedError, DeniedError),
    ("before", "InvalidHeaderValue", RejectedError, RejectedError),
    ("after", "OperationTimedOut", OutcomeUnknownError, ThrottledError),
    ("cut_before", "", OutcomeUnknownError, UnavailableError),
    ("cut", "", OutcomeUnknownError, UnavailableError),
    ("late", "", OutcomeUnknownError, UnavailableError),
]


@pytest.mark.parametrize(
    "name,kind,code,write,read",
    [
        (name, *answer)
        for name in (*WRITES, *READS)
        for answer in ANSWERS
        if name not in LOST or answer[2] is not OutcomeUnknownError  # settled: see the next test
    ],
)
def test_faults_become_errors(
    name: str, kind: str, code: str, write: type[StoreError], read: type[StoreError]
) -> None:
    """What may have happened is unknown to a writer and unavailable to a reader."""
    act = WRITES.get(name) or READS[name]
    sky = Sky(Fault(kind, op=OPS.get(name, name), code=code, times=1))

    async def main() -> None:
        with pytest.raises(write if name in WRITES else read) as caught:
            await act(sky.store)
        assert caught.value.op == name
        await sky.store.aclose()

    run_virtual(main())


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize(
    "kind,happens", [("after", True), ("cut", True), ("cut_before", False), ("late", False)]
)
def test_a_lost_move_of_a_write_is_settled(name: str, kind: str, happens: bool) -> None:
    """It has happened, or it never will: the temporary file is taken away."""
    sky = Sky(Fault(kind, op="rename", delay=Latency(first=5.0), times=1))

    async def main() -> None:
        if happens:
            await WRITES[name](sky.store)
        else:
            with pytest.raises(UnavailableError) as caught:
                await WRITES[name](sky.store)
            assert caught.value.op == name
        await sky.store.aclose()

    run_virtual(main())

    assert ("e/f" in sky.names) is happens
    assert not any(".asynccommit-" in path for path in sky.names)


@pytest.mark.parametrize("kind,happens", [("after", True), ("cut", True), ("cut_before", False)])
async def test_lost_answers(kind: str, happens: bool) -> None:
    """The rename is done or not; its token tells at the destination."""
    sky = Sky(Fault(kind, op="rename"))
    with pytest.raises(OutcomeUnknownError) as caught:
        await sky.store.rename("/d/f", "/e/f", token=A)

    assert caught.value.busy is (kind == "after")
    assert ("e/f" in sky.names) is happens
    assert ("d/f" in sky.names) is not happens
    if happens:
        assert (await sky.store.head("/e/f")).token == A


async def test_busy_tells_how_long_to_wait() -> None:
    """The wait that the service asks for comes with the error."""
    sky = Sky(Fault("before", retry_after=3.0))
    with pytest.raises(ThrottledError) as caught:
        await sky.store.head("/d/f")

    assert caught.value.retry_after == 3.0


def test_late_effect() -> None:
    """The rename happens seconds after its answer was lost, and aclose waits for it."""
    sky = Sky(Fault("late", op="rename", delay=Latency(first=5.0), times=1))

    async def main() -> float:
        loop = asyncio.get_running_loop()
        with pytest.raises(OutcomeUnknownError):
            await sky.store.rename("/d/f", "/e/f", token=A)
        await asyncio.sleep(4.9)
        assert sky.names == ["d", "d/f", "e"]
        await sky.store.aclose()
        assert sky.names == ["d", "e", "e/f"]
        return loop.time()

    assert run_virtual(main()) == 5.0


def test_late_effect_that_comes_too_late() -> None:
    """A rename that was sent again and done is not done twice."""
    sky = Sky(Fault("late", op="rename", delay=Latency(first=5.0), times=1))

    async def main() -> None:
        with pytest.raises(OutcomeUnknownError):
            await sky.store.rename("/d/f", "/e/f")
        await sky.store.rename("/d/f", "/e/f")
        await sky.store.rename("/e/f", "/e/g")
        await sky.store.aclose()

    run_virtual(main())

    assert sky.names == ["d", "e", "e/g"]


def test_late_put_shows_whole_files_only() -> None:
    """A put that is sent again while its first rename is late: no reader sees half of it."""
    sky = Sky(Fault("late", op="rename", delay=Latency(first=0.5), times=1))
    slow = Fault("slow", op="append", delay=Latency(first=1.0))

    async def main() -> Info:
        with pytest.raises(UnavailableError):
            await sky.store.put("/e/f", b"whole", token=A)
        sky.weather.add(slow)
        again = asyncio.ensure_future(sky.store.put("/e/f", b"whole", token=A))
        while not again.done():
            await asyncio.sleep(0.1)
            assert sky.account.names("e", recursive=False)[-1:] != ["e/f"] or (
                sky.account.data("e/f") == b"whole"
            )
        return again.result()

    assert run_virtual(main()).size == 5


def test_answer_that_never_comes_is_given_up() -> None:
    """After the patience of the client, though the effect was at once."""
    late = Fault("late", op="rename", delay=Latency(first=0.1), reply="never")
    sky = Sky(late, patience=30.0)

    async def main() -> float:
        with pytest.raises(OutcomeUnknownError):
            await sky.store.rename("/d/f", "/e/f")
        assert "e/f" in sky.names
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 30.0


def test_latency_is_waited_for() -> None:
    """Requests in a row take the sum, requests at once the longest."""
    sky = Sky()
    sky.weather.climate = Climate(latency=Latency(first=0.03))

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        times = []
        for count in (1, 8):
            await asyncio.gather(*(sky.store.head("/d/f") for _ in range(count)))
            times.append(loop.time())
        await sky.store.put("/e/f", b"x")
        return [*times, loop.time()]

    assert run_virtual(main()) == pytest.approx([0.03, 0.06, 0.18])


async def test_refusal_after_the_effect_hides_the_answer() -> None:
    """A request that fails twice over says the weather's error, not its own."""
    sky = Sky(Fault("after", op="rename", code="InternalError"))
    with pytest.raises(OutcomeUnknownError, match="InternalError"):
        await sky.store.rename("/gone", "/e/f")


async def test_slow_answers_tell_the_truth() -> None:
    """A no that takes its time is still that no."""
    sky = Sky(Fault("slow", delay=Latency(first=0.001)))
    with pytest.raises(NotFoundError):
        await sky.store.head("/gone")
    with pytest.raises(ExistsError):
        await sky.store.rename("/d/f", "/e")


def test_thousands_of_renames_in_any_weather() -> None:
    """Every file is at one of its two places with its etag, whatever was answered."""
    for seed in range(3):
        account = Bench()
        etags = [account.file(f"s/{n}") for n in range(1000)]
        account.dir("d")
        rules = (
            Fault("cut", probability=0.05),
            Fault("after", probability=0.02),
            Fault("late", probability=0.01),
            Fault("before", probability=0.01),
        )
        store = open_store(
            account, FaultInjector(random.Random(seed), account.clock, Climate(rules))
        )

        async def main(store: SimStore = store) -> list[BaseException | None]:
            moves = (store.rename(f"/s/{n}", f"/d/{n}") for n in range(1000))
            found = await asyncio.gather(*moves, return_exceptions=True)
            await store.aclose()
            return found

        results = run_virtual(main())
        for number, result in enumerate(results):
            moved = not isinstance(result, ThrottledError)
            path = f"{'d' if moved else 's'}/{number}"
            assert account.head(FS, path).etag == etags[number]
        assert len(account.names()) == 1002
        assert 50 < sum(isinstance(result, OutcomeUnknownError) for result in results) < 120
