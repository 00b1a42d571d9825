"""Determine whether a completion took effect, by upload and object.

An upload ends once, when it is completed or aborted. Therefore an upload that still exists has not
been completed. If it is gone, the object at its path shows its origin: by the token with which the
upload was begun, if the caller gave one, and else by its parts.

No other request of an upload needs this. A part can be sent again: the last one counts, and both
hold the same bytes. The beginning of an upload can be sent again too; if its response was lost, it
leaves an unknown upload without parts, which costs nothing and remains until it is listed and
aborted.
"""

from __future__ import annotations

from dataclasses import dataclass

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    StoreError,
)
from asynccommit.stores.base import Info
from asynccommit.stores.policies.funnel import Call, Op
from asynccommit.stores.policies.verdicts import Case, ReplyVerdict


@dataclass(frozen=True, slots=True)
class CompletionFacts:
    """The known facts about a completion when its outcome is determined.

    Attributes:
        lost: whether an attempt was not answered: it may have been executed, or be executed later.
        there: whether its upload still exists.
        barred: whether the response was that its path holds something that it must not replace, or
            does not hold what it must replace.
        made: whether the object at its path is its own; ``None`` if unknown.
    """

    lost: bool
    there: bool
    barred: bool
    made: bool | None


def judge_ending(ending: CompletionFacts) -> ReplyVerdict:
    """Return the verdict on a completion.

    ====== ===== ====== ====== =======
    upload lost  barred made   verdict
    ====== ===== ====== ====== =======
    gone   any   any    yes    DONE
    gone   any   any    untold UNKNOWN
    gone   yes   any    no     UNKNOWN
    gone   no    any    no     NO
    there  no    any    any    NO
    there  yes   yes    any    TAKEN
    there  yes   no     any    AGAIN
    ====== ===== ====== ====== =======

    * An upload that is gone was completed or aborted. If the object at its path is its own it was
      completed, whatever the response was: some attempt did it, by this process or an earlier one.
      (Without a token it may be another upload of the same bytes.)
    * If another object is there, or none, it may have been completed and replaced or deleted
      since, or aborted. Where no response was lost, it is the truth.
    * If the service does not report the parts of the object, the outcome is unknown.
    * While its upload is there it has not been done, even if an object of the same bytes is: that
      is another's. It is sent again. A late first attempt ends the upload as well; the second one
      then finds no upload, which is settled again.
    * It cannot be sent again if it must not replace and something is there, or if what it is to
      replace is not there. The lost sending cannot take effect either, as long as that stays.
    """
    if ending.there:
        if not ending.lost:
            return ReplyVerdict.NO
        return ReplyVerdict.TAKEN if ending.barred else ReplyVerdict.AGAIN
    if ending.made:
        return ReplyVerdict.DONE
    unknown = ending.lost or ending.made is None
    return ReplyVerdict.UNKNOWN if unknown else ReplyVerdict.NO


class SuspectCompletion(Case):
    """The completion of one upload whose outcome is in doubt."""

    def __init__(self, call: Call, op: Op) -> None:
        super().__init__(call, op, op.path)

    async def look(self, error: StoreError) -> tuple[Info | None, ReplyVerdict]:
        # The upload is checked first: if it has ended, the object is read after that end.
        there = not isinstance(error, NotFoundError) and await self._is_there(error)
        info, made = (None, None) if there else await self._object(error)
        return info, judge_ending(CompletionFacts(self.lost, there, self._is_barred(error), made))

    def answer(self, error: StoreError, verdict: ReplyVerdict, sent: int) -> StoreError:
        if verdict is ReplyVerdict.UNKNOWN and not self.lost:
            detail = f"{error}; the upload is gone, and the origin of {self.dest} is unknown"
            return self.error(OutcomeUnknownError, detail, error)
        if verdict is ReplyVerdict.TAKEN and self._is_barred(error):
            return error
        return super().answer(error, verdict, sent)

    def _is_barred(self, error: StoreError) -> bool:
        conditional = self.op.options.get("etag") is not None
        return isinstance(error, PreconditionError if conditional else ExistsError)

    async def _is_there(self, error: StoreError) -> bool:
        path, upload_id = self.op.args[:2]
        try:
            await self.call(Op("list_parts", (path, upload_id, None), False, True))
        except NotFoundError:
            return False
        except StoreError as failed:
            raise self.blind(path, error, failed) from failed
        return True

    async def _object(self, error: StoreError) -> tuple[Info | None, bool | None]:
        """Return the object at the path and whether the upload made it."""
        path, _, parts = self.op.args
        asked = Op("completed", (path, parts, self.op.options.get("token")), False, True)
        try:
            info: Info | None = await self.call(asked)
        except OutcomeUnknownError:
            return None, None
        except StoreError as failed:
            raise self.blind(path, error, failed) from failed
        return info, info is not None
