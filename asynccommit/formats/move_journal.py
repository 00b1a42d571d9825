"""The journal of a move of files: its record, and how it has ended.

JSON: ``type``, ``state`` (``begun``, ``finished`` or ``undone``), ``jobId`` (names the record,
below ``_temporary`` of ``dest``), ``source`` and ``dest`` (URLs of the directories that all files
come from and go to), ``tree`` (whether the source was to be moved as a whole), ``replace``,
``started`` and ``ended`` (milliseconds since the epoch of 1970; ``null`` while begun), ``files``
(the number of files that were moved, or moved back), ``owner`` (``id``, ``host``, ``user``,
``process`` of who began), ``links`` (which of ``source`` and ``dest`` were symbolic links as the
move began, separated by a space; missing if that is unknown). Readers ignore unknown fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from asynccommit.formats.commit_record import Owner
from asynccommit.formats.fields import MAX_TIME, JsonFields, dump_object, load_object

TYPE = "asynccommit.MoveJournal/1"
MAX_JOURNAL_BYTES = 1024 * 1024
"""Maximum number of bytes to read."""


class JournalState(StrEnum):
    """The state of a move with a journal."""

    BEGUN = "begun"
    FINISHED = "finished"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class MoveJournal:
    """A move of files.

    Attributes:
        job_id: names the commit record.
        source: URL of the directory that all files come from.
        dest: URL of the directory that all files go to.
        tree: whether the whole source is moved.
        replace: whether files at the destination are replaced.
        started_ms: when the move began, in milliseconds since the epoch.
        owner: who began it.
        state: how it stands.
        ended_ms: when it ended; ``None`` before.
        files: number of files moved, or moved back.
        links: which of ``source`` and ``dest`` were links at the beginning; ``None`` if unknown.
    """

    job_id: str
    source: str
    dest: str
    tree: bool
    replace: bool
    started_ms: int
    owner: Owner
    state: JournalState = JournalState.BEGUN
    ended_ms: int | None = None
    files: int = 0
    links: str | None = None


def encode_journal(journal: MoveJournal) -> bytes:
    """Return the JSON of a journal.

    Raises ``ManifestError`` if it is invalid.
    """
    value = {
        "type": TYPE,
        "state": journal.state.value,
        "jobId": journal.job_id,
        "source": journal.source,
        "dest": journal.dest,
        "tree": journal.tree,
        "replace": journal.replace,
        "started": journal.started_ms,
        "owner": journal.owner.to_json(),
        "ended": journal.ended_ms,
        "files": journal.files,
        "links": journal.links,
    }
    data = dump_object(value, "journal")
    decode_journal(data, "journal")
    return data


def decode_journal(data: bytes, path: str) -> MoveJournal:
    """Read a journal. Raises ``ManifestError`` for anything else."""
    fields = load_object(data, path, surrogates=True)
    fields.is_type(TYPE)
    return MoveJournal(
        job_id=fields.name("jobId"),
        source=fields.text("source"),
        dest=fields.text("dest"),
        tree=fields.boolean("tree"),
        replace=fields.boolean("replace"),
        started_ms=fields.count("started", maximum=MAX_TIME),
        owner=Owner.of(fields),
        state=_state(fields),
        ended_ms=None if fields.get("ended") is None else fields.count("ended", maximum=MAX_TIME),
        files=fields.count("files"),
        links=None if fields.get("links") is None else fields.text("links", ""),
    )


def _state(fields: JsonFields) -> JournalState:
    try:
        return JournalState(fields.text("state"))
    except ValueError:
        expected = ", ".join(JournalState)
        raise fields.wrong("state", f"is not one of {expected}") from None
