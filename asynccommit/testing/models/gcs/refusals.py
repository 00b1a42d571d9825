"""The errors of Google Cloud Storage, and the dialect of fault rules that name them.

Source: https://cloud.google.com/storage/docs/json_api/v1/status-codes, and messages as clients of
the service quote them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import Dialect

_TABLE = """
304 notModified Not Modified
400 badRequest Bad Request
400 invalid Invalid Value
400 invalidParameter Invalid Value
400 required Required
400 userProjectMissing Bucket is a requester pays bucket but no user project provided.
401 authError Invalid Credentials
403 forbidden Forbidden
403 objectUnderActiveHold The object is under an active hold and cannot be deleted or overwritten
    until the hold is removed.
403 retentionPolicyNotMet The object is subject to a retention policy and cannot be deleted or
    overwritten until its retention period has passed.
404 notFound Not Found
405 methodNotAllowed The specified method is not allowed against this resource.
408 uploadBrokenConnection The request timed out.
409 conflict The request conflicts with the state of the resource.
410 gone The resource is no longer there.
411 lengthRequired You must provide the Content-Length HTTP header.
412 conditionNotMet At least one of the pre-conditions you specified did not hold.
413 uploadTooLarge The upload is larger than the maximum that is allowed.
416 requestedRangeNotSatisfiable Request range not satisfiable
429 rateLimitExceeded You have exceeded your bucket's IO capacity. Please follow the request rate
    and access distribution guidelines at https://cloud.google.com/storage/docs/conformance in
    order to avoid temporary limits on your bucket.
500 internalError We encountered an internal error. Please try again.
501 notImplemented A requested header or function is not implemented.
502 badGateway Bad Gateway
503 backendError We encountered an internal error. Please try again.
504 gatewayTimeout Gateway Timeout
"""

REASONS: Mapping[str, tuple[int, str]] = {
    reason: (int(status), " ".join(words.split()))
    for status, reason, words in re.findall(r"^(\d+) (\w+) (.*(?:\n .*)*)", _TABLE, re.MULTILINE)
}
"""Reason -> status and message."""


class GcsRefusal(Refusal):
    """Raised when the service rejects a request.

    Args:
        status: HTTP status.
        reason: reason in the first entry of ``error.errors``; ``code`` is another name for it.
        message: message in the service's words.
        location_type: ``header`` or ``parameter``, if one of them caused the error.
        location: name of that header or parameter.
        headers: further response headers, named as on the wire.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str = "",
        *,
        location_type: str = "",
        location: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, reason, message, headers)
        self.location_type = location_type
        self.location = location

    @property
    def reason(self) -> str:
        """The reason, in one word."""
        return self.code

    @property
    def domain(self) -> str:
        """``usageLimits`` for rates, ``global`` for the rest."""
        return "usageLimits" if self.code == "rateLimitExceeded" else "global"


def refuse(
    reason: str,
    message: str | None = None,
    *,
    location_type: str = "",
    location: str = "",
    headers: Mapping[str, str] | None = None,
) -> GcsRefusal:
    """Return the refusal with this reason, by default in the service's words.

    A reason that is not in ``REASONS`` has the status 500.
    """
    status, words = REASONS.get(reason, (500, reason))
    return GcsRefusal(
        status,
        reason,
        words if message is None else message,
        location_type=location_type,
        location=location,
        headers=headers,
    )


OPS = (
    *("insert", "get", "read", "list", "patch", "delete", "rewrite", "move", "compose"),
    *("folder", "rename_folder", "operation", "layout", "bucket", "batch", "upload"),
)
"""The names of operations in rules, besides ``*``."""


def _refuse(
    code: str, message: str | None = None, headers: Mapping[str, str] | None = None
) -> GcsRefusal:
    return refuse(code, message, headers=headers)


GCS = Dialect(
    name="gcs",
    ops=OPS,
    codes=REASONS,
    busy="rateLimitExceeded",
    timed_out="backendError",
    refuse=_refuse,
)
