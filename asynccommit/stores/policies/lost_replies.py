"""Determine the outcome of a request whose reply was lost.

The identity of its result decides.

A rename, or a write that must not replace, cannot simply be repeated, and a second response alone
proves little: "there is no source" may mean that the first attempt succeeded. Nor is it always
known that there was a first attempt: a proxy may repeat a request, and a process that resumes has
no memory of earlier ones. Therefore every error response to such a request, like every missing
response, is checked against the store.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asynccommit.errors import ExistsError, NotFoundError, OutcomeUnknownError, StoreError
from asynccommit.redact import Redacted
from asynccommit.stores.base import NOT_A_LINK, Info, Traits
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.lost_completions import SuspectCompletion
from asynccommit.stores.policies.retry_budget import Backoff, is_throttled
from asynccommit.stores.policies.verdicts import TO_SETTLE, Case, DestinationState, ReplyVerdict

log = logging.getLogger(__name__)

__all__ = ["DestinationState", "Observation", "Recover", "ReplyVerdict", "judge"]


@dataclass(frozen=True, slots=True)
class Observation:
    """The known facts about a request when its outcome is determined.

    Attributes:
        lost: whether an attempt was not answered: it may have been executed, or be executed later.
        missing: whether the response was that something is missing.
        replace: whether it may replace what is at the destination.
        dest: the state of the destination.
        source: whether the source still exists; ``None`` if there is no source, or it was not
            checked.
    """

    lost: bool
    missing: bool
    replace: bool
    dest: DestinationState
    source: bool | None = None


def judge(sight: Observation) -> ReplyVerdict:
    """Return the verdict on a request.

    ===== ======= ======== ======== ======= =======
    lost  dest    source   replace  missing verdict
    ===== ======= ======== ======== ======= =======
    any   mine    any      any      any     DONE
    no    nothing there    any      yes     AGAIN
    no    else    any      any      any     NO
    yes   nothing there    any      any     AGAIN
    yes   else    there    yes      any     AGAIN
    yes   else    there    no       any     TAKEN
    yes   any     gone     any      any     UNKNOWN
    yes   nothing none     no       any     AGAIN
    yes   other   none     no       any     TAKEN
    yes   unmark. none     no       any     UNKNOWN
    ===== ======= ======== ======== ======= =======

    * What is at the destination with its token or etag got there by some sending of it.
    * A "no" that nothing speaks against is true. But under load the service calls a directory of
      the destination missing that is there (HADOOP-18242): while the source is there, ask again.
    * While its source is there, a rename has not been done. The lost sending may still take effect,
      before the second one or after it. The later one finds no source, or another etag than
      required, and has no effect; its response is settled by identity again.
    * It cannot be sent again if it must not replace and something else is there. The lost sending
      cannot take effect either, as long as that stays.
    * With the source gone and another one's file, or none, at the destination, it may have been
      done and undone by somebody else, or somebody else took the source.
    * A write that must not replace has no source. If the destination does not exist it is sent
      again; a late first request has the same token and the same bytes, so either of them is the
      write. Something with another token was there first, or has replaced it since; either way it
      does not stand. What bears no token may be its own, on a service that forgets them.
    """
    if sight.dest is DestinationState.MINE:
        return ReplyVerdict.DONE
    absent = sight.dest is DestinationState.NOTHING
    if not sight.lost:
        return ReplyVerdict.AGAIN if sight.missing and absent and sight.source else ReplyVerdict.NO
    if sight.source is False:
        return ReplyVerdict.UNKNOWN
    if absent or (sight.source and sight.replace):
        return ReplyVerdict.AGAIN
    return (
        ReplyVerdict.TAKEN
        if sight.source or sight.dest is DestinationState.OTHER
        else ReplyVerdict.UNKNOWN
    )


class Recover:
    """A policy that determines lost outcomes by reading, around ``Retry``.

    It covers the requests that cannot simply be repeated: renames and writes that must not replace,
    by token and etag, and the completion of uploads, by the upload and its parts (see
    ``asynccommit.stores.policies.lost_completions``).

    If the store remembers tokens (``Traits.tokens``), each such request gets a token, unless the
    caller gave one; all attempts use the same token. The etag that the caller gave counts if it, or
    its part for the content, survives a rename; in the latter case a rename is done if its source
    no longer has this version. A request with neither passes unchanged, and its outcome stays
    unknown.

    ``recovered`` counts, by method, the requests that were found done although they had no
    response, or another one. A repeated request waits as in ``Retry`` and spends the same budget.

    Args:
        traits: the capabilities of the store.
        rng: source of randomness for tokens and waits.
        attempts: maximum number of attempts of a request, not counting responses that the store was
            busy.
        deadline: seconds after the first lost response in which it is sent again.
        sleep: waits for a number of seconds.
        clock: measures the deadline; ``None`` for the running loop's time.
        log_fields: the ``extra`` of log records.
    """

    def __init__(
        self,
        traits: Traits,
        rng: random.Random,
        *,
        attempts: int = 8,
        deadline: float = 600.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
        log_fields: Mapping[str, str] | None = None,
    ) -> None:
        self.recovered: Counter[str] = Counter()
        self._traits = traits
        self._marks = {
            "rename": traits.tokens,
            "put": traits.tokens or traits.put_tokens,
            "mkdir_new": traits.tokens,
        }
        self._rng = rng
        self._attempts = attempts
        self._log_fields = log_fields
        self._backoff = Backoff(
            rng, account=traits.account, deadline=deadline, sleep=sleep, clock=clock
        )
        self.waited, self.waiting = self._backoff.waited, self._backoff.waiting

    def __repr__(self) -> str:
        return f"Recover(attempts={self._attempts})"

    def ready(self, op: Op) -> Op | None:
        """Return what to send first of a request.

        It has its token. ``None`` is returned if the store must be asked something before.
        """
        if op.repeatable or op.name not in self._marks:
            return op
        if self._marks[op.name]:
            return op if op.options.get("token") else self._marked(op)
        asks = op.name == "rename" and self._traits.content_etags
        return None if asks and op.options.get("etag") in (None, NOT_A_LINK) else op

    def around(self, call: Call) -> Call:
        traits, completes = self._traits, self._traits.multipart is not None
        etags, contents = traits.etag_survives_rename, traits.content_etags
        marks = self._marks
        if not (marks["put"] or etags or contents or completes):
            return call

        def recovered(op: Op) -> Awaitable[Any]:
            if op.name == "complete_upload":
                return self._sent(call, op)
            if op.repeatable or op.name not in marks:
                return call(op)
            if marks[op.name]:
                return self._sent(call, op if op.options.get("token") else self._marked(op))
            etag = op.options.get("etag")
            if op.name == "rename" and (etags or contents) and etag not in (None, NOT_A_LINK):
                return self._sent(call, op)
            if op.name == "rename" and contents:
                return self._versioned(call, op)
            return call(op)

        return recovered

    async def _versioned(self, call: Call, op: Op) -> Any:
        """Send a rename for the existing version, so that its outcome is testable."""
        info: Info = await call(Op("head", (op.path,), False, True))
        if info.etag is None:  # a directory
            return await call(op)
        options = {**op.options, "etag": info.etag}
        return await self._sent(call, Op(op.name, op.args, op.writes, op.repeatable, options))

    def _marked(self, op: Op) -> Op:
        """Return the request with a random UUID as its token."""
        text = f"{self._rng.getrandbits(128):032x}"
        token = f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"
        return Op(op.name, op.args, op.writes, op.repeatable, {**op.options, "token": token})

    async def _sent(self, call: Call, op: Op) -> Any:
        try:
            return await call(op)
        except TO_SETTLE as error:
            first: StoreError = error
        if op.name == "complete_upload":
            return await self._settle(SuspectCompletion(call, op), first)
        return await self._settle(_Case(self._traits, call, op), first)

    async def _settle(self, case: Case, error: StoreError) -> Any:
        start = self._backoff.now()
        sent, spent = 1, 0
        while True:
            case.lost = case.lost or isinstance(error, OutcomeUnknownError)
            spent += not is_throttled(error)
            info, verdict = await case.look(error)
            facts = verdict.name, sent, Redacted(error)
            log.debug("settled as %s after attempt %d: %s", *facts, extra=self._log_fields)
            if verdict is ReplyVerdict.DONE:
                self.recovered[case.op.name] += 1
                return None if case.op.name in ("rename", "mkdir_new") else info
            most = self._attempts if case.lost else 2
            may = verdict is ReplyVerdict.AGAIN and spent < most and isinstance(error, TO_SETTLE)
            if not (may and await self._backoff.wait(error, sent, start)):
                raise case.answer(error, verdict, sent)
            sent += 1
            try:
                return await case.call(case.op)
            except StoreError as again:
                error = again


class _Case(Case):
    """A rename or a write whose outcome is in doubt."""

    def __init__(self, traits: Traits, call: Call, op: Op) -> None:
        self._is_rename = op.name == "rename"
        super().__init__(call, op, op.args[1] if self._is_rename else op.path)
        tokens = traits.tokens or (traits.put_tokens and not self._is_rename)
        self._token: str | None = op.options.get("token") if tokens else None
        self._etag: str | None = op.options.get("etag")
        self._is_file = op.name == "put" or self._etag is not None
        self._directories = traits.directories
        self._contents = traits.content_etags
        # Two files may have one etag, or one file two names.
        self._twins = traits.weak_etags or traits.links
        self._lasting = traits.lasting
        self._same = traits.same

    async def look(self, error: StoreError) -> tuple[Info | None, ReplyVerdict]:
        """Return the facts about the destination, and the verdict from them."""
        missing = isinstance(error, NotFoundError)
        info = await self._destination(error)
        seen, source = self._recognise(info), None
        if seen is DestinationState.MINE and self._twins and await self._is_unmoved(error):
            seen = DestinationState.OTHER
        doubtful = self.lost or (missing and seen is DestinationState.NOTHING)
        if self._contents and self._has_content(info):
            return info, await self._told_by_source(error)
        if self._is_rename and doubtful and seen is not DestinationState.MINE:
            found = await self._head(self.op.path, error)
            source = found is not None
            if found is not None and self._etag is not None:
                source = self._same(self._etag, found.etag)
            if not source:  # A late attempt may have moved it between the two reads.
                info = await self._destination(error)
                if self._contents and self._has_content(info):
                    return info, ReplyVerdict.DONE
                seen = self._recognise(info)
        replace = bool(self.op.options.get("replace"))
        return info, judge(Observation(self.lost, missing, replace, seen, source))

    async def _is_unmoved(self, error: StoreError) -> bool:
        """Return whether the source of a rename is still there."""
        found = await self._head(self.op.path, error) if self._is_rename else None
        return found is not None and found.etag == self._etag

    async def _destination(self, error: StoreError) -> Info | None:
        """Return what is at the destination; ``None`` if nothing is in the way.

        On a store without directories of its own a file may have the name of a directory, which is
        there without files where all of them were moved away.
        """
        info = await self._head(self.dest, error)
        beside = self._is_file and not self._directories
        return None if beside and info is not None and info.is_dir else info

    def _has_content(self, info: Info | None) -> bool:
        """Return whether the destination has the content of this rename's source."""
        content = self._lasting(self._etag)
        return info is not None and content is not None and self._lasting(info.etag) == content

    async def _told_by_source(self, error: StoreError) -> ReplyVerdict:
        """Judge a rename whose content is at its destination by its source.

        If the source still exists, the destination holds another file with the same content, or the
        copy of a rename by copy and delete: the store knows which when the rename is sent again.
        """
        found = await self._head(self.op.path, error)
        if found is None or not self._same(found.etag, self._etag):
            return ReplyVerdict.DONE
        if not self.lost:
            return ReplyVerdict.NO
        return ReplyVerdict.TAKEN if isinstance(error, ExistsError) else ReplyVerdict.AGAIN

    def _recognise(self, info: Info | None) -> DestinationState:
        if info is None:
            return DestinationState.NOTHING
        if self._token is not None and info.token == self._token:
            # A partial write under its token must not count as a complete one.
            whole = self.op.name != "put" or info.size == len(self.op.args[1])
            return DestinationState.MINE if whole else DestinationState.UNMARKED
        etag = self._lasting(self._etag) and self._etag
        if etag is not None and info.etag == etag:
            return DestinationState.MINE
        marked = info.token is not None if etag is None else info.etag is not None
        return DestinationState.OTHER if marked else DestinationState.UNMARKED

    async def _head(self, path: str, error: StoreError) -> Info | None:
        try:
            found: Info = await self.call(Op("head", (path,), False, True))
        except NotFoundError:
            return None
        except StoreError as failed:
            raise self.blind(path, error, failed) from failed
        return found
