"""Recover settles what was not answered with yes by looking at what is there."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
)
from asynccommit.stores.base import Info, Kind, Traits
from asynccommit.stores.policies.funnel import Op
from asynccommit.stores.policies.lost_replies import (
    DestinationState,
    Observation,
    Recover,
    ReplyVerdict,
    judge,
)
from asynccommit.stores.policies.retry import Retry
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.stack import Answers, delete, head

KEEPS = Traits("keeps tokens", tokens=True)
ETAGS = Traits("keeps etags", tokens=False)
WEAK = Traits("gives etags twice", tokens=False, weak_etags=True)
NEITHER = Traits("keeps nothing", tokens=False, etag_survives_rename=False)

TOKEN = "11111111-1111-4111-8111-111111111111"
LOST = OutcomeUnknownError("rename", "/a", "reset")
MISSING = NotFoundError("rename", "/a")
EXISTS = ExistsError("rename", "/a")
OTHER_ETAG = PreconditionError("rename", "/a")
GONE = NotFoundError("head", "/a")


def rename(etag: str | None = "e", token: str | None = TOKEN, replace: bool = False) -> Op:
    """A rename with an identity."""
    options = {"replace": replace, "etag": etag, "token": token}
    return Op("rename", ("/a", "/b"), True, False, options)


def put(token: str | None = TOKEN, overwrite: bool = False) -> Op:
    """A write that must not replace."""
    options = {"overwrite": overwrite, "token": token}
    return Op("put", ("/a", b"data"), True, overwrite, options)


def seen(etag: str | None = "x", token: str | None = None, size: int = 4) -> Info:
    """What ``head`` says."""
    return Info("/b", Kind.FILE, size, etag, token=token)


MINE = seen("e", TOKEN)
BY_ETAG = seen("e", None)
BY_TOKEN = seen("changed", TOKEN)
OTHER = seen("x", "another")
UNMARKED = seen(None, None)


async def settle(op: Op, *answers: object, traits: Traits = KEEPS) -> tuple[Any, list[str]]:
    """Return what the caller is told, and which requests were sent."""
    script = Answers(*answers)
    policy = Recover(traits, random.Random(1), sleep=_instantly)
    try:
        told: Any = await policy.around(script)(op)
    except StoreError as error:
        told = error
    assert next(script.answers, None) is None, "an answer was not asked for"
    sent = [f"{op.name} {op.path}" if op.name == "head" else op.name for op in script.ops]
    return told, sent


async def _instantly(seconds: float) -> None:
    await asyncio.sleep(0)


TABLE = [
    # lost, missing, replace, dest, source -> verdict
    (False, True, False, DestinationState.MINE, None, ReplyVerdict.DONE),
    (False, False, False, DestinationState.MINE, None, ReplyVerdict.DONE),
    (True, False, True, DestinationState.MINE, None, ReplyVerdict.DONE),
    (True, True, False, DestinationState.MINE, False, ReplyVerdict.DONE),
    (False, True, False, DestinationState.NOTHING, True, ReplyVerdict.AGAIN),
    (False, True, True, DestinationState.NOTHING, True, ReplyVerdict.AGAIN),
    (False, True, False, DestinationState.NOTHING, False, ReplyVerdict.NO),
    (False, False, False, DestinationState.NOTHING, True, ReplyVerdict.NO),
    (False, False, False, DestinationState.NOTHING, None, ReplyVerdict.NO),
    (False, False, False, DestinationState.OTHER, None, ReplyVerdict.NO),
    (False, True, True, DestinationState.OTHER, None, ReplyVerdict.NO),
    (False, False, False, DestinationState.UNMARKED, None, ReplyVerdict.NO),
    (True, False, False, DestinationState.NOTHING, True, ReplyVerdict.AGAIN),
    (True, False, True, DestinationState.OTHER, True, ReplyVerdict.AGAIN),
    (True, False, True, DestinationState.UNMARKED, True, ReplyVerdict.AGAIN),
    (True, False, False, DestinationState.OTHER, True, ReplyVerdict.TAKEN),
    (True, False, False, DestinationState.UNMARKED, True, ReplyVerdict.TAKEN),
    (True, False, False, DestinationState.NOTHING, False, ReplyVerdict.UNKNOWN),
    (True, True, False, DestinationState.OTHER, False, ReplyVerdict.UNKNOWN),
    (True, False, True, DestinationState.OTHER, False, ReplyVerdict.UNKNOWN),
    (True, False, False, DestinationState.UNMARKED, False, ReplyVerdict.UNKNOWN),
    (True, False, False, DestinationState.NOTHING, None, ReplyVerdict.AGAIN),
    (True, False, False, DestinationState.OTHER, None, ReplyVerdict.TAKEN),
    (True, False, False, DestinationState.UNMARKED, None, ReplyVerdict.UNKNOWN),
]


@pytest.mark.parametrize("lost, missing, replace, dest, source, verdict", TABLE)
def test_the_table_of_cases(
    lost: bool,
    missing: bool,
    replace: bool,
    dest: DestinationState,
    source: bool | None,
    verdict: ReplyVerdict,
) -> None:
    """Every case has its verdict."""
    assert judge(Observation(lost, missing, replace, dest, source)) is verdict


@given(
    st.builds(
        Observation,
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.sampled_from(DestinationState),
        st.none() | st.booleans(),
    )
)
def test_what_no_case_may_break(sight: Observation) -> None:
    """Done is said of one's own only; a lost response never becomes a plain no."""
    verdict = judge(sight)
    assert (verdict is ReplyVerdict.DONE) == (sight.dest is DestinationState.MINE)
    if sight.lost:
        assert verdict is not ReplyVerdict.NO
        if sight.source is False and sight.dest is not DestinationState.MINE:
            assert verdict is ReplyVerdict.UNKNOWN
    else:
        assert verdict not in (ReplyVerdict.UNKNOWN, ReplyVerdict.TAKEN)
    if verdict is ReplyVerdict.AGAIN:
        assert sight.source is not False
        assert sight.dest is DestinationState.NOTHING or sight.replace


@pytest.mark.parametrize(
    "answer", [LOST, MISSING, EXISTS, OTHER_ETAG], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("found", [MINE, BY_ETAG, BY_TOKEN], ids=["both", "etag", "token"])
@pytest.mark.parametrize("replace", [False, True])
async def test_a_rename_is_found_done_whatever_was_answered(
    answer: StoreError, found: Info, replace: bool
) -> None:
    """Silence, a 404, a 409 and a 412 are each settled by one look at the destination."""
    told, sent = await settle(rename(replace=replace), answer, found)
    assert told is None
    assert sent == ["rename", "head /b"]


async def test_what_was_found_done_is_counted() -> None:
    """``recovered`` has the number of such requests, by method."""
    policy = Recover(KEEPS, random.Random(1))
    call = policy.around(Answers(LOST, MINE, LOST, seen("new", TOKEN), None))
    await call(rename())
    assert await call(put()) == seen("new", TOKEN)
    await call(rename())
    assert policy.recovered == {"rename": 1, "put": 1}
    assert repr(policy) == "Recover(attempts=8)"


async def test_a_directory_is_told_by_its_token() -> None:
    """A rename without an etag, as of a directory, is settled by the token alone."""
    assert await settle(rename(etag=None), LOST, seen(None, TOKEN)) == (None, ["rename", "head /b"])
    told, _ = await settle(rename(etag=None), LOST, UNMARKED, GONE, UNMARKED)
    assert isinstance(told, OutcomeUnknownError)


async def test_an_etag_is_enough_where_there_are_no_tokens() -> None:
    """A store that keeps no tokens is settled by the etag that survives a rename."""
    told, _ = await settle(rename(), LOST, BY_ETAG, traits=ETAGS)
    assert told is None


async def test_a_weak_etag_counts_only_once_the_source_is_gone() -> None:
    """While the source is there, a file of the same etag at the destination is another one."""
    source = Info("/a", Kind.FILE, 4, "e")
    told, _ = await settle(rename(), EXISTS, BY_ETAG, source, traits=WEAK)
    assert told is EXISTS
    told, sent = await settle(rename(), LOST, BY_ETAG, GONE, traits=WEAK)
    assert (told, len(sent)) == (None, 3)


@pytest.mark.parametrize("answer", [MISSING, EXISTS, OTHER_ETAG], ids=lambda e: type(e).__name__)
async def test_a_true_no_comes_unchanged(answer: StoreError) -> None:
    """An answer that nothing speaks against is the caller's, the very error, after one look."""
    told, sent = await settle(rename(), answer, OTHER)
    assert told is answer
    assert sent == ["rename", "head /b"]


async def test_a_source_that_is_not_there_is_said_to_be_missing() -> None:
    """Nothing at either end is what the answer says."""
    told, sent = await settle(rename(), MISSING, GONE, GONE, GONE)
    assert told is MISSING
    assert sent == ["rename", "head /b", "head /a", "head /b"]


async def test_a_directory_that_is_said_to_be_missing_is_asked_for_once_more() -> None:
    """Under load the service denies a directory that is there; a second no is believed."""
    told, sent = await settle(rename(), MISSING, GONE, BY_ETAG, None)
    assert (told, sent.count("rename")) == (None, 2)
    told, sent = await settle(rename(), MISSING, GONE, BY_ETAG, MISSING, GONE, BY_ETAG)
    assert (told, sent.count("rename")) == (MISSING, 2)


async def test_what_was_not_done_is_sent_again() -> None:
    """With the source in place a lost rename is sent again with the same token."""
    script = Answers(LOST, GONE, BY_ETAG, None)
    call = Recover(KEEPS, random.Random(1), sleep=_instantly).around(script)
    await call(rename(token=None))
    first, *_, last = script.ops
    assert first.options == last.options
    assert uuid.UUID(first.options["token"]).version == 4


async def test_a_late_first_sending_is_settled_too() -> None:
    """The second sending finds no source, because the first one has been done since."""
    told, sent = await settle(rename(), LOST, GONE, BY_ETAG, MISSING, MINE)
    assert told is None
    assert sent == ["rename", "head /b", "head /a", "rename", "head /b"]


@pytest.mark.parametrize("before", [GONE, OTHER], ids=["nothing", "something"])
async def test_a_move_between_the_two_looks_is_seen(before: object) -> None:
    """If the source is gone, the destination is looked at once more."""
    told, sent = await settle(rename(replace=True), LOST, before, GONE, MINE)
    assert told is None
    assert sent == ["rename", "head /b", "head /a", "head /b"]


async def test_another_file_at_the_source_is_not_the_source() -> None:
    """What has another etag is not what was to be moved."""
    told, _ = await settle(rename(), LOST, GONE, OTHER, GONE)
    assert isinstance(told, OutcomeUnknownError)


async def test_a_stranger_in_the_place_is_named() -> None:
    """A lost rename that was not done, and cannot be any more, ends as exists."""
    told, _ = await settle(rename(), LOST, OTHER, BY_ETAG)
    assert isinstance(told, ExistsError)
    assert "/b" in str(told)
    assert told.__cause__ is LOST


async def test_a_rename_that_may_replace_is_sent_again_over_a_stranger() -> None:
    """With the source in place, what is at the destination is what is to be replaced."""
    told, sent = await settle(rename(replace=True), LOST, OTHER, BY_ETAG, None)
    assert (told, sent.count("rename")) == (None, 2)


@pytest.mark.parametrize(
    "looks", [(GONE, GONE, GONE), (OTHER, GONE, OTHER)], ids=["nothing", "a stranger"]
)
async def test_where_nobody_can_tell_it_stays_unknown(looks: tuple[object, ...]) -> None:
    """A source that is gone without a trace leaves the outcome unknown."""
    told, _ = await settle(rename(), LOST, *looks)
    assert told is LOST


async def test_a_lost_write_is_known_by_its_token() -> None:
    """Its token makes it the write's own; another's token means that it has lost."""
    mine = seen("new", TOKEN)
    assert await settle(put(), LOST, mine) == (mine, ["put", "head /a"])
    assert await settle(put(), EXISTS, mine) == (mine, ["put", "head /a"])
    told, _ = await settle(put(), LOST, OTHER)
    assert isinstance(told, ExistsError)
    told, _ = await settle(put(), EXISTS, OTHER)
    assert told is EXISTS


async def test_half_a_write_does_not_pass_for_a_whole_one() -> None:
    """The token at a file of another size proves nothing."""
    told, _ = await settle(put(), LOST, seen("new", TOKEN, size=0))
    assert told is LOST


async def test_a_lost_write_that_left_nothing_is_sent_again() -> None:
    """If nothing is there the write is repeated with the same token."""
    told, sent = await settle(put(), LOST, GONE, seen("new", TOKEN))
    assert told == seen("new", TOKEN)
    assert sent == ["put", "head /a", "put"]


async def test_a_lost_write_may_be_what_bears_no_token() -> None:
    """A service that forgets tokens leaves it open whose a file is."""
    told, _ = await settle(put(), LOST, UNMARKED)
    assert told is LOST


@pytest.mark.parametrize("op", [put(), rename(etag=None)], ids=["put", "rename"])
async def test_without_an_identity_nothing_is_compared(op: Op) -> None:
    """Where neither token nor etag can tell, the error comes unchanged and nothing is asked."""
    told, sent = await settle(op, LOST, traits=ETAGS)
    assert (told, len(sent)) == (LOST, 1)
    assert Recover(NEITHER, random.Random(1)).around(settle) is settle


@pytest.mark.parametrize(
    "op",
    [head, delete, lambda: put(overwrite=True), lambda: Op("copy", ("/a", "/b"), True, False)],
)
async def test_other_requests_pass(op: Callable[[], Op]) -> None:
    """Reads, deletes, writes that replace, and copies are not touched."""
    script = Answers(LOST)
    sent = op()
    with pytest.raises(OutcomeUnknownError) as caught:
        await Recover(KEEPS, random.Random(1)).around(script)(sent)
    assert caught.value is LOST
    assert script.ops == [sent]


@pytest.mark.parametrize(
    "kind", [DeniedError, RejectedError, ThrottledError, UnavailableError], ids=lambda k: k.__name__
)
async def test_other_errors_are_answers_until_something_was_lost(kind: type[StoreError]) -> None:
    """A refusal is a refusal; after a lost response it says nothing of the first sending."""
    error = kind("rename", "/a", "no")
    assert await settle(rename(), error) == (error, ["rename"])
    told, _ = await settle(rename(), LOST, GONE, BY_ETAG, error, MINE)
    assert told is None
    told, _ = await settle(rename(), LOST, GONE, BY_ETAG, error, GONE, BY_ETAG)
    assert isinstance(told, OutcomeUnknownError)
    assert told.__cause__ is error


async def test_a_place_that_cannot_be_looked_at_tells_nothing() -> None:
    """After a lost response that is unknown; a plain answer stays what it was."""
    denied = DeniedError("head", "/b", "no permission")
    told, _ = await settle(rename(), LOST, denied)
    assert isinstance(told, OutcomeUnknownError)
    assert "no permission" in str(told)
    told, _ = await settle(rename(), MISSING, denied)
    assert told is MISSING
    assert "no permission" in told.__notes__[0]


async def test_it_ends() -> None:
    """A rename whose answers are all lost and that is never done is sent so often and no more."""
    script = [LOST, GONE, BY_ETAG] * 8
    told, sent = await settle(rename(), *script)
    assert told is LOST
    assert sent.count("rename") == 8


def test_what_is_sent_again_spends_the_budget() -> None:
    """Twenty renames that are lost at once wait for leave to be sent again."""

    async def main() -> None:
        policy = Recover(KEEPS, random.Random(1))
        await asyncio.gather(
            *[policy.around(Answers(LOST, GONE, BY_ETAG, None))(rename()) for _ in range(20)]
        )
        assert 9 < asyncio.get_running_loop().time() < 12
        assert policy.waited["budget"] > 10

    run_virtual(main())


# A model of a store whose answers get lost and whose effects come late, and that others use.

HOW = ["well", "refused", "before", "after", "late", "twice", "busy"]
STRANGE = ["", "", "", "", "put at dest", "take source", "take dest"]


@dataclass
class Model:
    """Two paths; each request meets the next of ``weather``, and somebody else's doing."""

    weather: Iterator[str]
    strange: Iterator[str]
    files: dict[str, Info] = field(default_factory=dict)
    late: list[Op] = field(default_factory=list)
    done: int = 0

    async def __call__(self, op: Op) -> Any:
        """Do what is asked, or not, and answer, or not."""
        await asyncio.sleep(0)
        self._stranger(next(self.strange, ""))
        how = next(self.weather, "well")
        while self.late and how != "late":
            self._try(self.late.pop())
        if op.name == "head":
            if op.path not in self.files:
                raise NotFoundError("head", op.path)
            return self.files[op.path]
        if how == "refused":
            raise UnavailableError(op.name, op.path)
        if how == "late":
            self.late.append(op)
        if how in ("after", "busy"):
            self._try(op)
        if how in ("late", "before", "after", "busy"):
            raise OutcomeUnknownError(op.name, op.path, how, busy=how == "busy")
        if how == "twice":
            self._try(op)
        return self._do(op)

    def _try(self, op: Op) -> None:
        try:
            self._do(op)
        except StoreError:
            return

    def _do(self, op: Op) -> Info | None:
        dest = op.args[1] if op.name == "rename" else op.path
        free = op.options.get("replace", False) or dest not in self.files
        if op.name == "rename":
            source = self.files.get(op.path)
            if source is None:
                raise NotFoundError(op.name, op.path)
            if op.options["etag"] not in (None, source.etag):
                raise PreconditionError(op.name, op.path)
        if not free:
            raise ExistsError(op.name, dest)
        token = op.options["token"]
        if op.name == "rename":
            moved = self.files.pop(op.path)
            self.files[dest] = Info(dest, Kind.FILE, moved.size, moved.etag, token=token)
        else:
            self.files[dest] = Info(dest, Kind.FILE, len(op.args[1]), "written", token=token)
        self.done += 1
        return self.files[dest]

    def _stranger(self, what: str) -> None:
        if what == "put at dest":
            self.files["/b"] = Info("/b", Kind.FILE, 1, "strange", token="strange")
        elif what == "take source":
            self.files.pop("/a", None)
        elif what == "take dest":
            self.files.pop("/b", None)


RENAMES = st.builds(
    rename, st.sampled_from([None, "e"]), st.sampled_from([None, TOKEN]), st.booleans()
)
WRITES = st.builds(
    lambda token: Op("put", ("/b", b"data"), True, False, {"overwrite": False, "token": token}),
    st.sampled_from([None, TOKEN]),
)


def play(op: Op, weather: list[str], strange: list[str]) -> tuple[Model, object]:
    """Return the store after one request, and what its caller was told."""
    model = Model(iter(weather), iter(strange))
    if op.name == "rename":
        model.files["/a"] = Info("/a", Kind.FILE, 4, "e")

    async def main() -> object:
        rng = random.Random(1)
        call = Recover(KEEPS, rng, attempts=30).around(
            Retry(rng, attempts=30, first=30).around(model)
        )
        try:
            return await call(op)
        except StoreError as error:
            return error

    return model, run_virtual(main())


@given(RENAMES | WRITES, st.lists(st.sampled_from(HOW), max_size=20))
def test_alone_every_request_is_done_once(op: Op, weather: list[str]) -> None:
    """With nobody else about, any weather ends in success, and it has happened exactly once."""
    model, told = play(op, weather, [])
    assert not isinstance(told, StoreError)
    assert model.done == 1
    assert model.files["/b"].token is not None
    assert "/a" not in model.files


@given(
    RENAMES | WRITES,
    st.lists(st.sampled_from(HOW).filter(lambda how: how != "twice"), max_size=20),
    st.lists(st.sampled_from(STRANGE), max_size=20),
)
def test_nothing_false_is_ever_said(op: Op, weather: list[str], strange: list[str]) -> None:
    """Whatever others do: success means that it happened, and a plain no that it did not.

    Of a write that somebody else has replaced it is said that something is there, which is true.
    """
    model, told = play(op, weather, strange)
    if not isinstance(told, StoreError):
        assert model.done >= 1
    elif isinstance(told, OutcomeUnknownError):
        assert {"before", "after", "late", "busy"} & set(weather)
    elif model.done:
        assert isinstance(told, ExistsError)
        assert op.name == "put"
        assert "put at dest" in strange


async def test_a_folder_that_has_the_name_of_a_file() -> None:
    """Where files need no directories, an emptied folder at the destination is in nobody's way."""
    folder, source = Info("/b", Kind.DIRECTORY, 0, None), seen("e")._replace(path="/a")
    bucket = Traits("has no directories", tokens=False, directories=False)

    told, sent = await settle(rename(token=None), LOST, folder, source, None, traits=bucket)
    assert (told, sent) == (None, ["rename", "head /b", "head /a", "rename"])

    told, _ = await settle(rename(token=None), LOST, folder, source, traits=ETAGS)
    assert isinstance(told, ExistsError)
