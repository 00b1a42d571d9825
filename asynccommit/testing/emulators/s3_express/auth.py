"""Check the signature of a request, and its session.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-create-session.html
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

from asynccommit.stores.s3.sign import DayKey, Shape, SigningKeys, canonical
from asynccommit.testing.emulators.s3_express.call import ExpressCall
from asynccommit.testing.models.s3.directory_bucket import DirectoryBucket
from asynccommit.testing.models.s3.refusals import refuse

SERVICE = "s3express"
SESSION = "x-amz-s3session-token"
BY_IDENTITY = frozenset({"session", "copy", "copy_part", "bucket"})
"""The operations that are authorised by the caller's own keys, not by those of a session."""

_HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<access>[^/]+)/(?P<day>\d{8})/(?P<region>[a-z0-9-]+)/"
    r"(?P<service>[a-z0-9-]+)/aws4_request, ?SignedHeaders=(?P<signed>[a-z0-9;-]+), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})",
    re.ASCII,
)


def authorise(call: ExpressCall, bucket: DirectoryBucket, keys: Mapping[str, str]) -> None:
    """Raise ``Refusal`` unless the caller may send this request.

    Args:
        call: the request.
        bucket: the bucket that it names.
        keys: secrets of the callers, by the id of the key.
    """
    found = _HEADER.fullmatch(call.headers.get("authorization", ""))
    if found is None:
        raise refuse("AccessDenied", "The request is not signed.")
    if found["service"] != SERVICE:
        raise refuse("AuthorizationHeaderMalformed", f"The service is not {SERVICE}.")
    if call.op in BY_IDENTITY:
        # Inferred: the token of a session says nothing here, and so is refused.
        if SESSION in call.headers or found["access"] not in keys:
            raise refuse("InvalidAccessKeyId")
        secret = keys[found["access"]]
    else:
        secret = _secret_of_session(call, bucket, found["access"])
    _check_signature(call, found, secret)


def _secret_of_session(call: ExpressCall, bucket: DirectoryBucket, access: str) -> str:
    session = bucket.sessions.get(call.headers.get(SESSION, ""))
    if session is None or session.access != access:
        raise refuse("AccessDenied", "There is no such session of this bucket.")
    if session.expires <= bucket.now():
        # Documented is that such requests fail; the code is inferred.
        raise refuse("ExpiredToken")
    if call.writes and not session.writes:
        raise refuse("AccessDenied", "The session is read-only.")
    return session.secret


def _check_signature(call: ExpressCall, found: re.Match[str], secret: str) -> None:
    names = tuple(found["signed"].split(";"))
    if "host" not in names or any(name not in call.headers for name in names):
        raise refuse("SignatureDoesNotMatch")
    if SESSION in call.headers and SESSION not in names:
        raise refuse("SignatureDoesNotMatch", "The session's token is not signed.")
    digest, date = (call.headers.get(f"x-amz-{_}", "") for _ in ("content-sha256", "date"))
    shape = Shape(names, found["signed"])
    text = canonical(call.method, call.path, call.text, call.headers, shape, digest)
    key = DayKey(SigningKeys(found["access"], secret), found["day"], found["region"], SERVICE)
    expected = key.authorization(date, found["signed"], text).rpartition("=")[2]
    if not hmac.compare_digest(expected, found["signature"]):
        raise refuse("SignatureDoesNotMatch")
