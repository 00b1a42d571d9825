"""The errors of S3, and the dialect of fault rules that name them.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import Dialect

_TABLE = """
403 AccessDenied Access Denied
400 AuthorizationHeaderMalformed The authorization header that you provided is not valid.
400 BadDigest The Content-MD5 or checksum value that you specified did not match what the server
    received.
409 ConditionalRequestConflict The conditional request cannot succeed due to a conflicting
    operation against this resource.
400 EntityTooLarge Your proposed upload exceeds the maximum allowed object size.
400 EntityTooSmall Your proposed upload is smaller than the minimum allowed size
400 ExpiredToken The provided token has expired.
400 IdempotentParameterMismatch Parameters on this idempotent request are inconsistent with
    parameters used in previous request(s).
500 InternalError We encountered an internal error. Please try again.
403 InvalidAccessKeyId The access key ID that you provided does not exist in our records.
400 InvalidArgument Invalid Argument
400 InvalidPart One or more of the specified parts could not be found. The part may not have been
    uploaded, or the specified entity tag may not match the part's entity tag.
400 InvalidPartOrder The list of parts was not in ascending order. Parts must be ordered by part
    number.
416 InvalidRange The requested range cannot be satisfied.
400 InvalidRequest Invalid Request
400 InvalidToken The provided token is malformed or otherwise not valid.
400 KeyTooLongError Your key is too long
400 MalformedXML The XML you provided was not well-formed or did not validate against our
    published schema
405 MethodNotAllowed The specified method is not allowed against this resource.
404 NoSuchBucket The specified bucket does not exist
404 NoSuchKey The specified key does not exist.
404 NoSuchUpload The specified upload does not exist. The upload ID may be invalid, or the upload
    may have been aborted or completed.
501 NotImplemented A header you provided implies functionality that is not implemented
409 OperationAborted A conflicting conditional operation is currently in progress against this
    resource. Please try again.
412 PreconditionFailed At least one of the pre-conditions you specified did not hold
400 RequestTimeout Your socket connection to the server was not read from or written to within
    the timeout period. Idle connections will be closed.
503 ServiceUnavailable Service is unable to handle request.
403 SignatureDoesNotMatch The request signature that the server calculated does not match the
    signature that you provided.
503 SlowDown Please reduce your request rate.
"""

CODES: Mapping[str, tuple[int, str]] = {
    code: (int(status), " ".join(words.split()))
    for status, code, words in re.findall(r"^(\d+) (\w+) (.*(?:\n .*)*)", _TABLE, re.MULTILINE)
}
"""Code -> status and message."""


def refuse(
    code: str, message: str | None = None, headers: Mapping[str, str] | None = None
) -> Refusal:
    """Return the refusal with this code, by default in the service's words.

    A code that is not in ``CODES`` has the status 500.
    """
    status, words = CODES.get(code, (500, code))
    return Refusal(status, code, words if message is None else message, headers)


WRITES = frozenset(
    {
        *("put", "copy", "copy_part", "delete", "delete_many"),
        *("create_upload", "put_part", "complete_upload", "abort_upload"),
    }
)
"""The operations that change the content of a bucket."""

OPS = (
    *("list_buckets", "bucket", "head", "get", "list", "list_versions"),
    *("list_uploads", "list_parts", *sorted(WRITES), "other"),
)
"""The names of operations in rules, besides ``*``. The model implements those on objects."""

S3 = Dialect(
    name="s3",
    ops=OPS,
    codes=CODES,
    busy="SlowDown",
    timed_out="InternalError",
    refuse=refuse,
)

EXPRESS_WRITES = WRITES | {"rename"}
"""The same for a directory bucket."""

S3_EXPRESS = Dialect(
    name="s3-express",
    ops=(*OPS, "rename", "session"),
    codes=CODES,
    busy="SlowDown",
    timed_out="InternalError",
    refuse=refuse,
)
