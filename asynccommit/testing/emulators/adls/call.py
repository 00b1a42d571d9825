"""Parse a request to ADLS Gen2: account, path, operation, API.

The service has two endpoints over the same files, ``dfs`` (JSON) and ``blob`` (XML), which differ
by host name. Where the host names neither, parameters and headers that only one of them has tell
them apart; if there is none, the client's User-Agent; otherwise it is ``dfs``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus, unquote_to_bytes

from asynccommit.testing.emulators.server import ServerRequest
from asynccommit.testing.models.adls.account import Refusal
from asynccommit.testing.models.adls.refusals import refusal

Query = Mapping[str, str]

_ENDPOINTS = ("blob", "dfs")
# Parameters that only the dfs endpoint has (Microsoft's pages "Path" and "Filesystem").
_DFS_PARAMETERS = frozenset(
    (
        "action",
        "continuation",
        "directory",
        "mode",
        "paginated",
        "position",
        "recursive",
        "resource",
    )
)
_BLOB_HEADERS = ("x-ms-blob-type", "x-ms-delete-snapshots", "x-ms-copy-source")
_BLOB_AGENTS = ("azblob", "storage-blob", "storage.blobs", "asynccommit-blob")
# The SDKs for Data Lake read paths and their properties from the blob endpoint.
_LAKE_AGENTS = ("storage-dfs", "datalake")


class AdlsTarget(NamedTuple):
    """The target of a URL: ``path`` is decoded, without a slash at either end.

    ``endpoint`` is that of the host name, ``blob`` or ``dfs``; empty if it names neither.
    """

    account: str
    filesystem: str
    path: str
    query: Query
    raw_path: str
    endpoint: str = ""


class AdlsCall:
    """A request with its target, effective verb and operation name."""

    __slots__ = (
        "account",
        "blob",
        "body",
        "filesystem",
        "headers",
        "method",
        "more",
        "path",
        "query",
        "request",
        "target",
    )

    def __init__(self, request: ServerRequest, target: AdlsTarget) -> None:
        self.request = request
        self.target = target
        self.body = request.body
        self.more = ""  # header lines of the answer
        self.account, self.filesystem, self.path, self.query = target[:4]
        self.headers = headers = request.headers
        method = request.method
        if "x-http-method-override" in headers:
            method = headers["x-http-method-override"].upper()
        self.method = method
        self.blob = _is_blob(self)

    @property
    def place(self) -> str:
        """Filesystem and path for fault rules; for a listing, its directory."""
        query = self.query
        path = self.path or query.get("directory", "") or query.get("prefix", "")
        return f"{self.filesystem}/{path}" if path else self.filesystem


def read_target(request: ServerRequest, accounts: Container[str]) -> AdlsTarget:
    """Parse ``/account/filesystem/path``, or the account from the Host header.

    Raises ``Refusal`` for an invalid URL, or an account that this emulator does not have.
    """
    raw, _, query = request.target.decode("latin-1").partition("?")
    raw = raw.partition("#")[0]
    if not raw.startswith("/"):
        raw = _without_host(raw)
    label, _, service = request.headers.get("host", "").partition(".")
    if label not in accounts:  # OneLake in a region is westus-onelake
        label = label.rpartition("-")[2]
    if label in accounts:
        endpoint = service.partition(".")[0]
        return AdlsTarget(
            label,
            *_split(raw[1:]),
            parse_query(query),
            raw,
            endpoint if endpoint in _ENDPOINTS else "",
        )
    account, _, rest = raw[1:].partition("/")
    if account not in accounts and "x-ms-rename-source" in request.headers:
        # Azure's SDK for Node leaves the account out of the path of a rename.
        account, rest = _signer(request), raw[1:]
    if account not in accounts:
        raise Refusal(404, "ResourceNotFound", f"The account {account!r} is not in this emulator.")
    return AdlsTarget(account, *_split(rest), parse_query(query), raw)


def _signer(request: ServerRequest) -> str:
    """Return the account whose key signs a request; empty if none does."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    return rest.partition(":")[0] if scheme == "SharedKey" else ""


def _without_host(raw: str) -> str:
    scheme, colon, rest = raw.partition("://")
    if not colon or scheme not in ("http", "https"):
        raise Refusal(400, "InvalidUri", "The request URI is invalid.")
    return "/" + rest.partition("/")[2]


def _split(rest: str) -> tuple[str, str]:
    filesystem, _, path = rest.partition("/")
    return decode(filesystem), decode(path).strip("/")


def decode(text: str) -> str:
    """Undo percent-encoding. Raises ``Refusal`` for invalid UTF-8, or a NUL."""
    if "%" not in text and text.isascii():
        return text
    try:
        decoded = unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeError:
        decoded = "\0"
    if "\0" in decoded:
        raise Refusal(400, "InvalidUri", "The request URI is invalid.")
    return decoded


@lru_cache(maxsize=4096)
def parse_query(text: str) -> Query:
    """Return the parameters: lower-case keys, decoded values.

    Values of the same key are joined. A plus is a space, also where the query is signed: obstore
    encodes spaces so.
    """
    found: dict[str, list[str]] = {}
    for pair in text.split("&"):
        key, _, value = pair.partition("=")
        if key:
            found.setdefault(unquote(key).lower(), []).append(unquote_plus(value))
    return {key: ",".join(sorted(values)) for key, values in found.items()}


def _is_blob(call: AdlsCall) -> bool:
    query, headers = call.query, call.headers
    if call.target.endpoint:
        return call.target.endpoint == "blob"
    if "restype" in query or "comp" in query:
        return True
    if "x-ms-rename-source" in headers or not _DFS_PARAMETERS.isdisjoint(query):
        return False
    if any(_ in headers for _ in _BLOB_HEADERS):
        return True
    agent = headers.get("user-agent", "").lower()
    if call.method in ("HEAD", "GET") and any(_ in agent for _ in _LAKE_AGENTS):
        return bool(call.path)
    return any(_ in agent for _ in _BLOB_AGENTS)


def flag(query: Query, key: str, default: bool = False) -> bool:
    """Return a boolean parameter. Raises ``Refusal`` if it is invalid."""
    value = query.get(key, "").lower()
    if not value:
        return default
    if value not in ("true", "false"):
        raise bad_parameter(key, value)
    return value == "true"


def number(query: Query, key: str, default: int | None = None) -> int | None:
    """Return a non-negative integer parameter. Raises ``Refusal`` if invalid."""
    value = query.get(key, "")
    if not value:
        return default
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise bad_parameter(key, value)
    if value.startswith("-"):
        raise refusal("OutOfRangeQueryParameterValue")
    return int(value)


def bad_parameter(key: str, value: str = "") -> Refusal:
    """Return the refusal of an invalid query parameter."""
    text = "The value for one of the query parameters specified in the request URI is invalid."
    return Refusal(400, "InvalidQueryParameterValue", f"{text} ({key}={value[:100]})")
