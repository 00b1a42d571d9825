"""Headers for encryption, storage class and access of S3 objects.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingEncryption.html
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from asynccommit.errors import OptionError
from asynccommit.stores.http.options import customer_key

_SSE = "x-amz-server-side-encryption"
_COPY = "x-amz-copy-source-server-side-encryption"
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_KMS = re.compile(r"[A-Za-z0-9:/_.-]{1,2048}", re.ASCII)
# S3A's names, those of the service, and no encryption of the client's own.
_METHODS: Mapping[str, str] = {
    "": "",
    "AES256": "AES256",
    "SSE-S3": "AES256",
    "SSE-KMS": "aws:kms",
    "AWS:KMS": "aws:kms",
    "DSSE-KMS": "aws:kms:dsse",
    "AWS:KMS:DSSE": "aws:kms:dsse",
    "SSE-C": "SSE-C",
}


@dataclass(frozen=True, slots=True)
class Keeping:
    """Headers that determine the storage of objects, by lower-case name.

    Attributes:
        written: for requests that make an object or begin an upload.
        content: for every request that reads or writes content; the customer's key.
        source: the customer's key for the source of a copy.
    """

    written: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Encryption:
    """The encryption options.

    Attributes:
        method: under S3A's name or the service's; empty for the bucket's own.
        key: id of a key of KMS, or the customer's own: 32 bytes or these in base64.
        context: of KMS: JSON, that in base64, or ``a=b, c=d``.
    """

    method: str = ""
    key: str | bytes = field(default="", repr=False)
    context: str = ""


def keeping(encryption: Encryption, storage_class: str = "", acl: str = "") -> Keeping:
    """Return the headers for the options.

    Raises:
        OptionError: a value cannot be one, or two contradict each other.
    """
    method = _METHODS.get(encryption.method.strip().upper())
    if method is None:  # it may be the key, so it is not repeated
        raise OptionError(
            "unknown encryption method: expected SSE-S3, SSE-KMS, DSSE-KMS or SSE-C; objects that "
            "a client encrypts itself (CSE) cannot be read"
        )
    if encryption.key and method in ("", "AES256"):
        method = "aws:kms" if method == "" else _contradiction()
    written = {
        "x-amz-storage-class": _word("storage class", storage_class.upper()),
        "x-amz-acl": _acl(acl),
    }
    if method == "SSE-C":
        content, source = _own_key(encryption.key)
        return Keeping(_given(written), content, source)
    written[_SSE] = method
    if method.startswith("aws:kms"):
        written[f"{_SSE}-aws-kms-key-id"] = _kms(encryption.key)
        written[f"{_SSE}-context"] = _context(encryption.context)
    return Keeping(_given(written))


def _contradiction() -> str:
    raise OptionError("SSE-S3 takes no key: leave the key out, or use SSE-KMS or SSE-C")


def _given(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if value}


def _word(what: str, text: str) -> str:
    if text and not _WORD.fullmatch(text):
        raise OptionError(f"{text[:100]!r} is not a {what}: expected one word")
    return text


def _acl(text: str) -> str:
    """Return a canned ACL in the service's spelling.

    Hadoop writes BucketOwnerFullControl for bucket-owner-full-control.
    """
    word = _word("canned ACL", text.strip())
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word).lower()


def _kms(key: str | bytes) -> str:
    text = key if isinstance(key, str) else ""
    if (key and not text) or (text and not _KMS.fullmatch(text)):
        raise OptionError("invalid KMS key id: expected an ARN, a key id or alias/NAME")
    return text


def _context(text: str) -> str:
    if not text.strip():
        return ""
    try:
        if text.lstrip().startswith("{"):
            pairs = json.loads(text)
        elif "=" in text.rstrip("="):
            pairs = dict(pair.strip().split("=", 1) for pair in text.split(","))
        else:
            pairs = json.loads(base64.b64decode(text, validate=True))
        if not isinstance(pairs, dict) or not all(isinstance(_, str) for _ in pairs.values()):
            raise ValueError("no pairs")
    except (ValueError, binascii.Error):
        raise OptionError("the encryption context is neither JSON nor a=b, c=d") from None
    return base64.b64encode(json.dumps(pairs, separators=(",", ":")).encode()).decode()


def _own_key(key: str | bytes) -> tuple[dict[str, str], dict[str, str]]:
    raw = customer_key("the key of SSE-C", key)
    digest = hashlib.md5(raw, usedforsecurity=False).digest()
    values = {
        "algorithm": "AES256",
        "key": base64.b64encode(raw).decode(),
        "key-md5": base64.b64encode(digest).decode(),
    }
    return (
        {f"{_SSE}-customer-{part}": value for part, value in values.items()},
        {f"{_COPY}-customer-{part}": value for part, value in values.items()},
    )
