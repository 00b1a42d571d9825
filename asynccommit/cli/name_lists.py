"""Lists of files: lines of a name, or of name, size and etag.

Tabs separate the three. A name that is not printable text, or begins with a quotation mark, is
written as git writes paths: in quotation marks, with C's escapes and octal ones for bytes. So any
name fits into one line, and is read back exactly.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from typing import NamedTuple

from asynccommit.cli.file_call import read_lines_aside
from asynccommit.errors import OptionError
from asynccommit.runtime.terminal import plain

_LETTERS = {
    "\a": "a",
    "\b": "b",
    "\t": "t",
    "\n": "n",
    "\v": "v",
    "\f": "f",
    "\r": "r",
    '"': '"',
    "\\": "\\",
}
_ESCAPED = {letter: found.encode() for found, letter in _LETTERS.items()}
_QUOTED = re.compile(r'"((?:[^"\\]|\\[abtnvfr"\\]|\\[0-3][0-7]{2})*)"')
_ESCAPE = re.compile(rb'\\([abtnvfr"\\]|[0-3][0-7]{2})')


class ListedName(NamedTuple):
    """One line of a list.

    Attributes:
        name: the name, relative to a directory.
        size: its size; ``None`` for any.
        etag: its etag; ``None`` for any.
    """

    name: str
    size: int | None = None
    etag: str | None = None


def quote_name(name: str) -> str:
    """Return a name as it stands in a list."""
    if name.isprintable() and not name.startswith('"'):
        return name
    return f'"{"".join(map(_escape, name))}"'


def _escape(letter: str) -> str:
    if letter in _LETTERS:
        return f"\\{_LETTERS[letter]}"
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(letter))


async def read_list(file: str) -> AsyncIterator[ListedName]:
    """Yield the lines of a list; ``-`` is standard input.

    Raises ``OptionError`` if the file cannot be read, or a line is neither a name nor a name with
    size and etag.
    """
    number = 0
    async for line in read_lines_aside(file):
        number += 1
        name, facts = _split(line)
        size, etag, *more = *facts, "", ""
        if name is None or more[2:] or (size and not (size.isascii() and size.isdecimal())):
            shown = plain(line[:200])
            raise OptionError(
                f"{file}, line {number}: expected a name, perhaps with size and etag after tabs, "
                f'not {shown!r}; a name with a tab is written as ls writes it: "a\\tb"'
            )
        yield ListedName(name, int(size) if size else None, etag or None)


def _split(line: str) -> tuple[str | None, list[str]]:
    """Return the name of a line, ``None`` if it is invalid, and what follows."""
    if not line.startswith('"'):
        name, *facts = line.split("\t")
        return name or None, facts
    found = _QUOTED.match(line)
    if found is None or line[found.end() : found.end() + 1] not in ("", "\t"):
        return None, []
    return _unquote(found[1]), line[found.end() :].split("\t")[1:]


def _unquote(text: str) -> str:
    def byte(found: re.Match[bytes]) -> bytes:
        said = found[1].decode()
        return _ESCAPED[said] if said in _ESCAPED else bytes([int(said, 8)])

    return os.fsdecode(_ESCAPE.sub(byte, os.fsencode(text)))
