"""Find blobs by their tags, in an account or a container.

Microsoft's pages "Find Blobs by Tags" and "Find Blobs by Tags in Container" describe the language:
comparisons of a tag with a text, and of ``@container`` with a name, all of which must hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from asynccommit.testing.emulators.adls.call import AdlsCall, bad_parameter, number
from asynccommit.testing.emulators.adls.list import results_xml, tags_xml
from asynccommit.testing.emulators.adls.wire import xml_text
from asynccommit.testing.models.adls.account import AdlsAccount, Node
from asynccommit.testing.models.adls.listing import decode_token, encode_token
from asynccommit.testing.models.adls.refusals import refusal

_MOST = 5000  # blobs of a page
_CONTAINER = "@container"
_TERM = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]+)"|(?P<plain>@container|[A-Za-z_]\w*))"""
    r"""\s*(?P<sign>>=|<=|=|>|<)\s*'(?P<value>[^']*)'\s*""",
    re.ASCII,
)
_AND = re.compile(r"AND\b", re.IGNORECASE)
_SIGNS: Mapping[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class TagTerm(NamedTuple):
    """A comparison of a tag, or of ``@container``, with a value."""

    name: str
    sign: str
    value: str

    def holds(self, tags: Mapping[str, str]) -> bool:
        """Return whether the tag exists and compares so."""
        return self.name in tags and _SIGNS[self.sign](tags[self.name], self.value)


def read_tag_terms(text: str) -> list[TagTerm]:
    """Parse the terms of an expression. Raises ``Refusal`` if it is invalid."""
    terms, start = [], 0
    while found := _TERM.match(text, start):
        terms.append(TagTerm(found["quoted"] or found["plain"], found["sign"], found["value"]))
        if found.end() == len(text):
            return terms
        joint = _AND.match(text, found.end())
        if joint is None:
            break
        start = joint.end()
    raise bad_parameter("where", text)


def tagged_blobs_xml(account: AdlsAccount, call: AdlsCall, scheme: str) -> bytes:
    """Return a page of the blobs that an expression selects.

    They are those of the container, or of the account if the request names none. Of their tags,
    those that the expression names are shown.
    """
    where = call.query.get("where", "")
    if not where:
        raise refusal("MissingRequiredQueryParameter")
    terms = read_tag_terms(where)
    if call.filesystem and any(term.name == _CONTAINER for term in terms):
        raise bad_parameter("where", where)
    marker = call.query.get("marker", "")
    after = tuple(decode_token(where, marker).split("/")) if marker else ()
    most = min(number(call.query, "maxresults") or _MOST, _MOST)
    found = [_ for _ in _selected(account, call.filesystem, terms) if _place(_) > after]
    token = encode_token(where, "/".join(_place(found[most - 1]))) if found[most:] else ""
    shown = "".join(_shown(*blob, terms) for blob in found[:most])
    content = f"<Where>{xml_text(where)}</Where><Blobs>{shown}</Blobs>"
    return results_xml(call, scheme, "", content, token)


def _selected(
    account: AdlsAccount, filesystem: str, terms: Sequence[TagTerm]
) -> Iterator[tuple[str, str, Node]]:
    """Yield container, path and node of each blob for which all terms hold."""
    for home in _names(account, filesystem):
        token = None
        while True:
            page = account.list(home, recursive=True, token=token)
            for path, node in page.entries:
                if node.tags and all(_.holds({**node.tags, _CONTAINER: home}) for _ in terms):
                    yield home, path, node
            token = page.token
            if token is None:
                break


def _names(account: AdlsAccount, filesystem: str) -> list[str]:
    if filesystem:
        return [account.head_filesystem(filesystem).name]
    names, token = [], None
    while True:
        found, token = account.list_filesystems("", None, token)
        names += [_.name for _ in found]
        if token is None:
            return names


def _place(blob: tuple[str, str, Node]) -> tuple[str, ...]:
    return (blob[0], *blob[1].split("/"))


def _shown(container: str, path: str, node: Node, terms: Sequence[TagTerm]) -> str:
    asked = {term.name for term in terms}
    tags = {name: value for name, value in node.tags.items() if name in asked}
    return (
        f"<Blob><Name>{xml_text(path)}</Name><ContainerName>{container}</ContainerName>"
        f"{tags_xml(tags)}</Blob>"
    )
