"""Telling what became of the completion of an upload, by the upload and by what is there.

An upload ends once, when it is completed or when it is aborted. So one that is still there has not
been completed; and if it is gone, the object that is there tells who made it: by the token that the
upload was begun with, if the caller gave one, and else by its parts.

Nothing else of an upload needs this. A part can be sent again: the last one counts, and both are
the same bytes. A begin can too; one whose answer was lost leaves an upload that nobody knows,
which costs what its parts take, none, until somebody lists the uploads and aborts it.
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
class Ending:
    """What is known of a completion when it is settled.

    Attributes:
        lost: a sending of it was not answered: it may have been done, or be done later.
        there: its upload is.
        barred: the answer was that something is at its path which it must not replace, or not what
            it is to replace.
        made: whether the object at its path is its own; ``None`` if nothing tells.
    """

    lost: bool
    there: bool
    barred: bool
    made: bool | None


def judge_ending(ending: Ending) -> ReplyVerdict:
    """Return what became of a completion.

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
      completed, whatever was answered: some sending did it, of this process or of one before it.
      (Without a token that may be another upload of just the same bytes.)
    * If another object is there, or none, it may have been completed and replaced or deleted
      since, or aborted. Where no answer was lost, the answer is the truth.
    * Where the service does not tell what the object is made of, nobody knows.
    * While its upload is there it has not been done, even if an object of the same bytes is: that
      is another's. It is sent again. A late first sending ends the upload as well; the second one
      is then answered that there is none, which is settled once more.
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
    """The completion of one upload, under suspicion."""

    def __init__(self, call: Call, op: Op) -> None:
        super().__init__(call, op, op.path)

    async def look(self, error: StoreError) -> tuple[Info | None, ReplyVerdict]:
        """See ``Case.look``."""
        # First the upload: what ended it is there when the object is looked at.
        there = not isinstance(error, NotFoundError) and await self._is_there(error)
        info, made = (None, None) if there else await self._object(error)
        return info, judge_ending(Ending(self.lost, there, self._is_barred(error), made))

    def answer(self, error: StoreError, verdict: ReplyVerdict, sent: int) -> StoreError:
        """See ``Case.answer``."""
        if verdict is ReplyVerdict.UNKNOWN and not self.lost:
            detail = f"{error}; the upload is gone, and nothing tells what {self.dest} is made of"
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
        """Return what is at the path if it is the upload's, and whether it is."""
        path, _, parts = self.op.args
        asked = Op("completed", (path, parts, self.op.options.get("token")), False, True)
        try:
            info: Info | None = await self.call(asked)
        except OutcomeUnknownError:
            return None, None
        except StoreError as failed:
            raise self.blind(path, error, failed) from failed
        return info, info is not None
