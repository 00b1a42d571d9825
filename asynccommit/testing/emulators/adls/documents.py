"""Serve what the blob endpoint exchanges as XML documents.

These are the tags of a blob, the access policies of a container, and delegation keys of users.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl
from xml.etree import ElementTree

from asynccommit.testing.emulators.adls import headers as sent
from asynccommit.testing.emulators.adls.auth import AccountKeys, delegation_key
from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.adls.list import tags_xml
from asynccommit.testing.emulators.adls.wire import (
    AdlsWire,
    filesystem_identity,
    xml_text,
)
from asynccommit.testing.models.adls.account import AdlsAccount, Node
from asynccommit.testing.models.adls.conditions import check_write
from asynccommit.testing.models.adls.nodes import Filesystem
from asynccommit.testing.models.adls.refusals import Refusal, refusal

_HEAD = '\ufeff<?xml version="1.0" encoding="utf-8"?>'
_XML = "Content-Type: application/xml\r\n"
_LARGEST = 64 * 1024
_MOST_TAGS, _MOST_POLICIES = 10, 5
_LONGEST_NAME, _LONGEST_VALUE = 128, 256  # of a tag
_USER = "00000000-0000-0000-0000-000000000001"
_TENANT = "00000000-0000-0000-0000-000000000000"


class Documents:
    """The operations on tags, policies and keys; each method is one."""

    def __init__(
        self, accounts: Mapping[str, AdlsAccount], wire: AdlsWire, keyring: AccountKeys
    ) -> None:
        self._keyring = keyring
        self._accounts = accounts
        self._wire = wire

    def get_tags(self, call: AdlsCall) -> bytes:
        """Return the tags of a blob."""
        node = self._tagged(call)
        body = f"{_HEAD}{tags_xml(node.tags)}".encode()
        return self._wire.answer(call, 200, _XML, body)

    def set_tags(self, call: AdlsCall) -> bytes:
        """Replace the tags of a blob; its etag and time stay the same."""
        node = self._tagged(call)
        pairs = [
            (tag.findtext("Key") or "", tag.findtext("Value") or "")
            for tag in parse_document(call.request.body, "Tags").iterfind("TagSet/Tag")
        ]
        node.more().tags = check_tags(pairs)
        return self._wire.answer(call, 204)

    def _tagged(self, call: AdlsCall) -> Node:
        """Return the node of a blob; conditions on tags fail with 412."""
        node = self._accounts[call.account].head(call.filesystem, call.path)
        if node.virtual:
            raise refusal("PathNotFound")
        check_write(node, sent.blob_conditions(call.headers))
        check_write(node, sent.conditions(call.headers))
        return node

    def get_policies(self, call: AdlsCall) -> bytes:
        """Return the access policies of a container, and its public access."""
        found = self._accounts[call.account].head_filesystem(call.filesystem)
        body = f"{_HEAD}<SignedIdentifiers>{found.policies}</SignedIdentifiers>".encode()
        lines = filesystem_identity(found) + public_line(found) + _XML
        return self._wire.answer(call, 200, lines, body)

    def set_policies(self, call: AdlsCall) -> bytes:
        """Replace the access policies of a container, and its public access."""
        account = self._accounts[call.account]
        policies = _policies(call.request.body) if call.request.body else ""
        public = sent.public_access(call.headers)
        found = account.head_filesystem(call.filesystem)
        found = account.set_filesystem_properties(
            call.filesystem, found.properties, sent.conditions(call.headers)
        )
        found.policies, found.public = policies, public
        return self._wire.answer(call, 200, filesystem_identity(found))

    def delegation_key(self, call: AdlsCall) -> bytes:
        """Return a key of a user, who must have a token."""
        if not call.headers.get("authorization", "").lower().startswith("bearer "):
            raise refusal("AuthenticationFailed")
        asked = parse_document(call.request.body, "KeyInfo")
        start, expiry = (asked.findtext(name) or "" for name in ("Start", "Expiry"))
        if not start or not expiry:
            raise refusal("InvalidInput")
        tenant = asked.findtext("DelegatedUserTid") or ""
        parts = {
            "SignedOid": _USER,
            "SignedTid": _TENANT,
            "SignedStart": start,
            "SignedExpiry": expiry,
            "SignedService": "b",
            "SignedVersion": call.headers.get("x-ms-version", ""),
            "SignedDelegatedUserTid": tenant,
        }
        parts["Value"] = delegation_key(self._keyring.keys[call.account], parts.values())
        shown = "".join(
            f"<{name}>{xml_text(text)}</{name}>" for name, text in parts.items() if text
        )
        body = f"{_HEAD}<UserDelegationKey>{shown}</UserDelegationKey>".encode()
        return self._wire.answer(call, 200, _XML, body)


def parse_document(body: bytes, root: str) -> ElementTree.Element:
    """Parse a document of a request. Raises ``Refusal`` if it is invalid."""
    # Entities can expand a small document to a huge one; none of these has any.
    if b"<!" in body or len(body) > _LARGEST:
        raise _invalid()
    try:
        found = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise _invalid() from None
    if found.tag != root:
        raise _invalid()
    return found


def _invalid() -> Refusal:
    return Refusal(400, "InvalidXmlDocument", "XML specified is not syntactically valid.")


def header_tags(call: AdlsCall) -> Mapping[str, str]:
    """Return the tags in the header ``x-ms-tags`` of a write."""
    text = call.headers.get("x-ms-tags", "")
    return check_tags(parse_qsl(text, keep_blank_values=True)) if text else {}


def check_tags(pairs: list[tuple[str, str]]) -> Mapping[str, str]:
    """Return tags by name. Raises ``Refusal`` for invalid ones."""
    found = dict(pairs)
    if (
        len(found) != len(pairs)
        or len(found) > _MOST_TAGS
        or any(not 0 < len(name) <= _LONGEST_NAME for name in found)
        or any(len(value) > _LONGEST_VALUE for value in found.values())
    ):
        raise Refusal(400, "InvalidTag", "The tags specified are invalid.")
    return found


def _policies(body: bytes) -> str:
    """Return the policies of a document as XML of our own."""
    shown = []
    for given in parse_document(body, "SignedIdentifiers").iterfind("SignedIdentifier"):
        policy = "".join(
            f"<{name}>{xml_text(text)}</{name}>"
            for name in ("Start", "Expiry", "Permission")
            if (text := given.findtext(f"AccessPolicy/{name}"))
        )
        policy = f"<AccessPolicy>{policy}</AccessPolicy>" if policy else ""
        shown.append(
            f"<SignedIdentifier><Id>{xml_text(given.findtext('Id') or '')}</Id>"
            f"{policy}</SignedIdentifier>"
        )
    if len(shown) > _MOST_POLICIES:
        raise _invalid()
    return "".join(shown)


def public_line(found: Filesystem) -> str:
    """Return the header that says who may read a container without a key."""
    return f"x-ms-blob-public-access: {found.public}\r\n" if found.public else ""
