"""The options of ``mv`` that finish or undo a move with a journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from asynccommit.cli.arguments import absolute, store_options
from asynccommit.cli.file_call import FileCall, OnBulk
from asynccommit.cli.output import Output
from asynccommit.commit.hints import quoted
from asynccommit.engine.journals import read_local
from asynccommit.engine.report import BulkReport
from asynccommit.engine.settling import resume, rollback
from asynccommit.errors import OptionError
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address, parse_url

JournalFile = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="Write a journal, a path or a URL in the same store, to resume or undo the move.",
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume", metavar="JOURNAL", help="Finish an interrupted move; no other arguments."
    ),
]
Rollback = Annotated[
    str | None,
    typer.Option("--rollback", metavar="JOURNAL", help="Undo an interrupted move."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Move files of unfinished jobs, too; with --resume or --rollback: do not wait for a "
        "dead owner's lease.",
    ),
]
LeaseSeconds = Annotated[
    float | None,
    typer.Option(
        "--lease",
        min=1.0,
        metavar="SECONDS",
        help="With a journal: silence after which another process may continue.",
    ),
]


@dataclass(frozen=True, slots=True)
class Settling:
    """The options of ``mv`` that finish or undo a move.

    Attributes:
        resume: the journal of a move to finish.
        rollback: the journal of a move to undo.
        force: do not wait for the lease of an owner.
        lease: seconds without a heartbeat after which another may continue.
    """

    resume: str | None
    rollback: str | None
    force: bool
    lease: float | None

    def read(self, others: Sequence[object]) -> str | None:
        """Return the journal to settle, if there is one.

        ``others`` are the values of options that do not go with it. Raises ``OptionError``.
        """
        if self.resume is None and self.rollback is None:
            return None
        if self.resume is not None and self.rollback is not None:
            raise OptionError("expected either --resume or --rollback")
        if any(others):
            raise OptionError("--resume and --rollback take everything else from the journal")
        return self.resume if self.rollback is None else self.rollback

    def run(
        self,
        journal: str,
        storage: Sequence[str] | None,
        output: Output,
        *,
        rate: float | None,
        workers: int | None,
    ) -> BulkReport:
        """Finish or undo the move.

        Raises as ``engine.resume`` and ``engine.rollback`` do.
        """
        place = absolute(journal)
        call = FileCall(_store_of(place), store_options(storage), rate, workers, output)
        settle = rollback if self.resume is None else resume

        async def run(store: Wrapped, on_bulk: OnBulk) -> BulkReport:
            return await settle(
                store, str(place), force=self.force, lease=self.lease, on_progress=on_bulk
            )

        return call.run(run, "to continue, run the same command again")


def advice_of(journal: str) -> str:
    """Return how a move with a journal is continued."""
    name = quoted(absolute(journal).path if absolute(journal).scheme == "file" else journal)
    return (
        f"finish the move: asynccommit mv --resume {name} - or undo it: asynccommit mv --rollback "
        f"{name}"
    )


def _store_of(journal: Address) -> Address:
    """Return a place in the store of the files that a journal names."""
    return journal if journal.scheme != "file" else parse_url(read_local(journal.path).dest)
