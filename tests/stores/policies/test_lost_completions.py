"""Recover settles the completion of an upload by the upload and by what is at its path."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
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
from asynccommit.stores.base import Info, Kind, Multipart, Traits
from asynccommit.stores.multipart import PartPage
from asynccommit.stores.parts import Part
from asynccommit.stores.policies.funnel import Op, Wrapped
from asynccommit.stores.policies.lost_completions import CompletionFacts, judge_ending
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.policies.retry import Retry
from asynccommit.stores.policies.verdicts import ReplyVerdict
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import UploadRules
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.support.stack import Answers
from tests.testing.models.s3.bench import open_store

BARE = Traits("takes parts", etag_survives_rename=False, multipart=Multipart())
PARTS = (Part("0" * 32), Part("1" * 32))
LOST = OutcomeUnknownError("complete_upload", "/f", "reset")
MISSING = NotFoundError("complete_upload", "/f", "no such upload")
EXISTS = ExistsError("complete_upload", "/f")
CONFLICT = PreconditionError("complete_upload", "/f", "a conflict")
GONE = NotFoundError("list_parts", "/f")
UNTOLD = OutcomeUnknownError("completed", "/f", "nothing tells")
THERE = PartPage(())
MADE = Info("/f", Kind.FILE, 8, "made")


def complete(overwrite: bool = True, **options: str) -> Op:
    """The completion of an upload."""
    told = {"overwrite": overwrite, **options}
    return Op("complete_upload", ("/f", "id", PARTS), True, False, told)


async def _instantly(seconds: float) -> None:
    await asyncio.sleep(0)


async def settle(op: Op, *answers: object) -> tuple[Any, list[str]]:
    """Return what the caller is told, and which requests were sent."""
    script = Answers(*answers)
    policy = Recover(BARE, random.Random(1), sleep=_instantly)
    try:
        told: Any = await policy.around(script)(op)
    except StoreError as error:
        told = error
    assert next(script.answers, None) is None, "an answer was not asked for"
    return told, [op.name for op in script.ops]


TABLE = [
    # lost, there, barred, made -> verdict
    (False, False, False, True, ReplyVerdict.DONE),
    (True, False, False, True, ReplyVerdict.DONE),
    (False, False, True, True, ReplyVerdict.DONE),
    (True, False, True, True, ReplyVerdict.DONE),
    (False, False, False, None, ReplyVerdict.UNKNOWN),
    (True, False, True, None, ReplyVerdict.UNKNOWN),
    (True, False, False, False, ReplyVerdict.UNKNOWN),
    (True, False, True, False, ReplyVerdict.UNKNOWN),
    (False, False, False, False, ReplyVerdict.NO),
    (False, False, True, False, ReplyVerdict.NO),
    (False, True, False, None, ReplyVerdict.NO),
    (False, True, True, None, ReplyVerdict.NO),
    (True, True, True, None, ReplyVerdict.TAKEN),
    (True, True, False, None, ReplyVerdict.AGAIN),
]


@pytest.mark.parametrize("lost, there, barred, made, verdict", TABLE)
def test_the_table_of_cases(
    lost: bool, there: bool, barred: bool, made: bool | None, verdict: ReplyVerdict
) -> None:
    """Every case has its verdict."""
    assert judge_ending(CompletionFacts(lost, there, barred, made)) is verdict


@given(
    st.builds(
        CompletionFacts, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([True, False])
    )
)
def test_what_no_case_may_break(ending: CompletionFacts) -> None:
    """Done needs an upload that is gone; again needs one that is there; silence is never a no."""
    verdict = judge_ending(ending)
    assert (verdict is ReplyVerdict.DONE) == (ending.made is True and not ending.there)
    if verdict is ReplyVerdict.AGAIN:
        assert ending.there
        assert ending.lost
    if ending.lost:
        assert verdict is not ReplyVerdict.NO
    else:
        assert verdict in (ReplyVerdict.DONE, ReplyVerdict.NO)


@pytest.mark.parametrize("overwrite", [True, False])
async def test_what_was_completed_is_found_done(overwrite: bool) -> None:
    """Silence, and an answer that there is no such upload or something is there, are settled."""
    op = complete(overwrite)
    looked = ["complete_upload", "list_parts", "completed"]
    assert await settle(op, LOST, GONE, MADE) == (MADE, looked)
    assert await settle(op, EXISTS, GONE, MADE) == (MADE, looked)
    assert await settle(op, CONFLICT, GONE, MADE) == (MADE, looked)
    assert await settle(op, MISSING, MADE) == (MADE, ["complete_upload", "completed"])


async def test_what_was_found_done_is_counted() -> None:
    """``recovered`` has the number of completions that no answer told of."""
    policy = Recover(BARE, random.Random(1))
    await policy.around(Answers(MISSING, MADE))(complete())
    await policy.around(Answers(MADE))(complete())
    assert policy.recovered == {"complete_upload": 1}


@pytest.mark.parametrize("answer", [EXISTS, CONFLICT], ids=lambda e: type(e).__name__)
async def test_a_no_to_an_upload_that_is_there_comes_unchanged(answer: StoreError) -> None:
    """An answer that nothing speaks against is the caller's, after one look."""
    told, sent = await settle(complete(overwrite=False), answer, THERE)
    assert told is answer
    assert sent == ["complete_upload", "list_parts"]


async def test_an_upload_that_is_gone_and_made_nothing_is_said_to_be_missing() -> None:
    """It was aborted, or what it made has been replaced: the answer says no more than that."""
    told, _ = await settle(complete(), MISSING, None)
    assert told is MISSING


async def test_a_lost_completion_is_sent_again_while_its_upload_is_there() -> None:
    """The upload has not ended, so the sending that was lost has done nothing yet."""
    told, sent = await settle(complete(), LOST, THERE, MADE)
    assert (told, sent) == (MADE, ["complete_upload", "list_parts", "complete_upload"])


async def test_a_late_first_sending_is_settled_too() -> None:
    """The second sending finds no upload, because the first one has been done since."""
    told, sent = await settle(complete(), LOST, THERE, MISSING, MADE)
    assert (told, sent[-1]) == (MADE, "completed")


async def test_what_is_in_the_way_of_a_lost_completion_is_named() -> None:
    """If it must not replace, and something is there, it ends as that."""
    told, sent = await settle(complete(overwrite=False), LOST, THERE, EXISTS, THERE)
    assert told is EXISTS
    assert sent.count("complete_upload") == 2


async def test_what_is_not_there_to_be_replaced_ends_a_lost_completion() -> None:
    """If it is to replace one etag only, and finds another or none, it ends as that."""
    op = complete(etag="old")
    told, sent = await settle(op, LOST, THERE, CONFLICT, THERE)
    assert told is CONFLICT
    assert sent.count("complete_upload") == 2
    assert await settle(op, CONFLICT, THERE) == (CONFLICT, ["complete_upload", "list_parts"])


async def test_a_completion_that_did_replace_its_etag_is_found_done() -> None:
    """The second sending does not find the etag any more, because the first one has been done."""
    looked = ["complete_upload", "list_parts", "complete_upload", "list_parts", "completed"]
    assert await settle(complete(etag="old"), LOST, THERE, CONFLICT, GONE, MADE) == (MADE, looked)


async def test_the_token_of_the_upload_is_what_is_looked_for() -> None:
    """Who completes an upload with its token has it settled by that."""
    script = Answers(LOST, GONE, MADE)
    call = Recover(BARE, random.Random(1), sleep=_instantly).around(script)
    assert await call(complete(token="mark")) is MADE
    assert script.ops[-1].args == ("/f", PARTS, "mark")


async def test_where_the_service_does_not_tell_nobody_knows() -> None:
    """An upload that is gone and an object of unknown parts: not even a plain no is believed."""
    for answers in ((LOST, GONE, UNTOLD), (MISSING, UNTOLD), (EXISTS, GONE, UNTOLD)):
        told, _ = await settle(complete(overwrite=False), *answers)
        assert isinstance(told, OutcomeUnknownError)


@pytest.mark.parametrize("answer", [None, UNTOLD], ids=["another", "untold"])
async def test_a_lost_completion_whose_upload_is_gone_may_be_anything(answer: object) -> None:
    """It may have been completed and replaced since, or aborted."""
    told, _ = await settle(complete(), LOST, GONE, answer)
    assert isinstance(told, OutcomeUnknownError)


@pytest.mark.parametrize("failed", [DeniedError("list_parts", "/f"), UnavailableError("x", "/f")])
async def test_what_cannot_be_looked_at_tells_nothing(failed: StoreError) -> None:
    """The look's failure is told with the answer, or with the silence."""
    told, _ = await settle(complete(), LOST, failed)
    assert isinstance(told, OutcomeUnknownError)
    assert "could not be read" in str(told)
    again = ExistsError("complete_upload", "/f")
    told, _ = await settle(complete(), again, failed)
    assert told is again
    assert "could not be read" in told.__notes__[0]
    told, _ = await settle(complete(), NotFoundError("complete_upload", "/f"), failed)
    assert isinstance(told, NotFoundError)


@pytest.mark.parametrize("kind", [DeniedError, RejectedError, ThrottledError])
async def test_other_errors_pass(kind: type[StoreError]) -> None:
    """What says that nothing was done is not looked into."""
    error = kind("complete_upload", "/f")
    assert await settle(complete(), error) == (error, ["complete_upload"])


async def test_it_ends() -> None:
    """An upload that stays, and whose completion is never answered, is given up."""
    script = Answers(*[LOST, THERE] * 8)
    call = Recover(BARE, random.Random(1), attempts=4, sleep=_instantly).around(script)
    with pytest.raises(OutcomeUnknownError):
        await call(complete())
    assert [op.name for op in script.ops].count("complete_upload") == 4


# --- a bucket, and others who use it ---------------------------------------------------------

HOW = ["well", "refused", "before", "after", "late", "twice", "busy"]
STRANGE = ["", "", "", "", "put", "delete", "abort", "complete", "complete the same"]
MINE, THEIRS = b"mine", b"theirs"


@dataclass
class Sky:
    """A bucket; each request meets the next of ``weather``, and somebody else's doing."""

    store: SimS3Store
    weather: Iterator[str]
    strange: Iterator[str]
    upload_id: str = ""
    parts: tuple[Part, ...] = ()
    late: list[Op] = field(default_factory=list)
    done: int = 0

    async def __call__(self, op: Op) -> Any:
        """Do what is asked, or not, and answer, or not."""
        await asyncio.sleep(0)
        await self._stranger(next(self.strange, ""))
        how = next(self.weather, "well")
        while self.late and how != "late":
            await self._try(self.late.pop())
        if not op.writes:
            return await self._do(op)
        if how == "refused":
            raise UnavailableError(op.name, op.path)
        if how == "late":
            self.late.append(op)
        if how in ("after", "busy", "twice"):
            await self._try(op)
        if how in ("late", "before", "after", "busy"):
            raise OutcomeUnknownError(op.name, op.path, how, busy=how == "busy")
        return await self._do(op)

    async def _try(self, op: Op) -> None:
        try:
            await self._do(op)
        except StoreError:
            return

    async def _do(self, op: Op) -> Any:
        was_open = self.store.bucket.is_open("f", self.upload_id)
        answer = await getattr(self.store, op.name)(*op.args, **op.options)
        self.done += op.writes and was_open
        return answer

    async def begin(self, data: bytes, token: str | None = None) -> tuple[str, tuple[Part, ...]]:
        """Begin an upload of the path."""
        upload_id = await self.store.create_upload("/f", token=token)
        return upload_id, (await self.store.put_part("/f", upload_id, 1, data),)

    async def _stranger(self, what: str) -> None:
        try:
            if what == "put":
                await self.store.put("/f", b"strange")
            elif what == "delete":
                await self.store.delete("/f")
            elif what == "abort":
                await self.store.abort_upload("/f", self.upload_id)
            elif what:
                data = MINE if what == "complete the same" else THEIRS
                upload_id, parts = await self.begin(data)
                await self.store.complete_upload("/f", upload_id, parts)
        except NotFoundError:
            return


@dataclass(frozen=True)
class Asking:
    """How an upload is completed: over an old file of its own, or what is there, or nothing."""

    overwrite: bool = True
    token: str | None = None
    over: bool = False


def play(
    asking: Asking, rules: UploadRules, weather: list[str], strange: list[str]
) -> tuple[Sky, object]:
    """Return the bucket after one completion, and what its caller was told."""
    sky = Sky(open_store(rules), iter(weather), iter(strange))

    async def main() -> object:
        old = await sky.store.put("/f", b"old") if asking.over else None
        sky.upload_id, sky.parts = await sky.begin(MINE, asking.token)
        rng = random.Random(1)
        traits = sky.store.traits
        call = Recover(traits, rng, attempts=30).around(Retry(rng, attempts=30).around(sky))
        args = ("/f", sky.upload_id, sky.parts)
        options: dict[str, object] = {"overwrite": asking.overwrite, "token": asking.token}
        options["etag"] = old and old.etag
        try:
            return await call(Op("complete_upload", args, True, False, options))
        except StoreError as error:
            return error

    return sky, run_virtual(main())


RULES = [
    UploadRules(remembers=0.0),
    UploadRules(),
    UploadRules(remembers=0.0, sse_kms=True),
    UploadRules(sse_kms=True),
]
WEATHER = st.lists(st.sampled_from(HOW), max_size=20)
ASKING = st.builds(Asking, st.booleans(), st.sampled_from([None, "mark"]), st.booleans())


@given(ASKING, st.sampled_from(RULES), WEATHER)
def test_alone_every_upload_is_completed_once(
    asking: Asking, rules: UploadRules, weather: list[str]
) -> None:
    """With nobody else about, any weather ends in success, and it has happened exactly once.

    Where nothing tells, because the etag is none and there is no token, it may end in that.
    """
    sky, told = play(asking, rules, weather, [])
    if rules.sse_kms and asking.token is None and isinstance(told, OutcomeUnknownError):
        return
    assert isinstance(told, Info)
    assert sky.done == 1
    assert sky.store.bucket.objects["f"].data == MINE
    assert sky.store.bucket.uploads.open == {}


@given(
    ASKING,
    st.sampled_from(RULES),
    WEATHER,
    st.lists(st.sampled_from(STRANGE), max_size=20),
)
def test_nothing_false_is_ever_said(
    asking: Asking, rules: UploadRules, weather: list[str], strange: list[str]
) -> None:
    """Whatever others do: success means that it happened, and a plain no that it did not.

    Without a token success is also what became of another upload of just the same bytes, when this
    one was aborted. Of what has happened and is gone again it may be said that there is no such
    upload.
    """
    sky, told = play(asking, rules, weather, strange)
    if isinstance(told, Info):
        alike = asking.token is None and {"abort", "complete the same"} <= set(strange)
        assert sky.done == 1 or alike
    elif isinstance(told, OutcomeUnknownError):
        untold = rules.sse_kms and asking.token is None
        assert untold or {"before", "after", "late", "busy"} & set(weather)
    else:
        assert isinstance(told, StoreError)
        assert not isinstance(told, ExistsError) or not (asking.overwrite or asking.over)
        assert not isinstance(told, PreconditionError) or asking.over
        if sky.done:
            assert isinstance(told, NotFoundError | ExistsError | PreconditionError)
            assert {"twice", "late"} & set(weather)
            assert {"put", "delete", "complete", "complete the same"} & set(strange)


async def test_a_store_without_uploads_is_not_asked_for_them() -> None:
    """Where no file comes in parts, and nothing else can be told, the policy costs nothing."""
    script = Answers()
    neither = Traits("keeps nothing", etag_survives_rename=False)
    assert Recover(neither, random.Random(1)).around(script) is script
    assert Recover(BARE, random.Random(1)).around(script) is not script


async def test_completed_is_asked_once_where_the_service_does_not_tell() -> None:
    """That nobody knows is an answer, and not sent again as if it had been lost."""
    store = open_store(UploadRules(sse_kms=True))
    retry = Retry(random.Random(1), sleep=_instantly)
    wrapped = Wrapped(store, retry)
    upload_id = await store.create_upload("/f")
    part = await store.put_part("/f", upload_id, 1, b"data")
    await store.complete_upload("/f", upload_id, [part])
    with pytest.raises(OutcomeUnknownError) as caught:
        await wrapped.completed("/f", [Part("0" * 32)])
    assert not getattr(caught.value, "__notes__", None)
    script = Answers(UnavailableError("completed", "/f"), UNTOLD, MADE)
    with pytest.raises(OutcomeUnknownError):
        await retry.around(script)(Op("completed", ("/f", PARTS), False, True))
    assert len(script.ops) == 2
