"""The errors of ADLS Gen2: code, status and message."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TABLE = """
400 BlockListTooLong The block list may not contain more than 50,000 blocks.
400 InvalidAclEntries The access control list specified in the request is invalid.
400 InvalidBlobOrBlock The specified blob or block content is invalid.
400 InvalidFlushPosition The uploaded data is not contiguous or the position query parameter
    value is not equal to the length of the file after appending the uploaded data.
400 InvalidHeaderValue The value for one of the HTTP headers is not in the correct format.
400 InvalidHttpVerb The HTTP verb specified is invalid - it is not recognized by the server.
400 InvalidInput One of the request inputs is not valid.
400 InvalidPropertyName The property name contains invalid characters.
400 InvalidQueryParameterValue Value for one of the query parameters specified in the request
    URI is invalid.
400 InvalidRenameDestinationPath The specified rename destination path is invalid.
400 InvalidResourceName The specified resource name contains invalid characters.
400 UnsupportedHeader One of the HTTP headers specified in the request is not supported.
400 InvalidSourceUri The source URI is invalid.
400 InvalidUri The request URI is invalid.
400 HierarchicalNamespaceNotEnabled The account being accessed does not have hierarchical
    namespace enabled.
400 Md5Mismatch The MD5 value specified in the request did not match with the MD5 value
    calculated by the server.
400 MissingRequiredHeader An HTTP header that's mandatory for this request is not specified.
400 MissingRequiredQueryParameter A query parameter that's mandatory for this request is not
    specified.
400 OutOfRangeInput One of the request inputs is out of range.
400 OutOfRangeQueryParameterValue One of the query parameters specified in the request URI is
    outside the permissible range.
400 UnsupportedHeader One of the headers specified in the request is not supported.
400 UnsupportedQueryParameter One of the query parameters specified in the request URI is not
    supported.
413 RequestBodyTooLarge The request body is too large and exceeds the maximum permissible limit.
405 UnsupportedHttpVerb The resource doesn't support the specified HTTP verb.
401 NoAuthenticationInformation Server failed to authenticate the request. Please refer to the
    information in the www-authenticate header.
401 InvalidAuthenticationInfo Authentication information is not given in the correct format.
    Check the value of Authorization header.
403 AuthenticationFailed Server failed to authenticate the request. Make sure the value of
    Authorization header is formed correctly including the signature.
403 AuthorizationFailure This request is not authorized to perform this operation.
403 AuthorizationPermissionMismatch This request is not authorized to perform this operation
    using this permission.
403 AccountIsDisabled The specified account is disabled.
403 InsufficientAccountPermissions The account being accessed does not have sufficient
    permissions to execute this operation.
404 FilesystemNotFound The specified filesystem does not exist.
404 PathNotFound The specified path does not exist.
404 RenameDestinationParentPathNotFound The parent directory of the destination path does not
    exist.
404 ResourceNotFound The specified resource does not exist.
404 SourcePathNotFound The source path for a rename operation does not exist.
403 RequestForbiddenByContainerEncryptionPolicy The request is forbidden by the container
    encryption policy.
409 BlobCustomerSpecifiedEncryptionMismatch The given customer specified encryption does not match
    the encryption used to encrypt the blob.
409 BlobDoesNotUseCustomerSpecifiedEncryption The blob is not encrypted with customer specified
    encryption.
409 BlobIsSealed The specified blob is sealed and its contents can't be modified unless the blob
    is re-created after a delete.
409 BlobOperationNotSupported Blob operation is not supported.
409 BlobUsesCustomerSpecifiedEncryption The blob is encrypted with customer specified encryption,
    but it was not provided in the request.
409 BlockCountExceedsLimit The committed block count cannot exceed the maximum limit of 50,000
    blocks.
409 DestinationPathIsBeingDeleted The specified destination path is marked to be deleted.
409 DirectoryNotEmpty The recursive query parameter value must be true to delete a non-empty
    directory.
409 FilesystemAlreadyExists The specified filesystem already exists.
409 FilesystemBeingDeleted The specified filesystem is being deleted.
409 InvalidAppendOperation The resource was created or modified by the Blob Service API and
    cannot be appended to by the Data Lake Storage Service API.
409 InvalidBlobType The blob type is invalid for this operation.
409 InvalidDestinationPath The specified path, or an element of the path, exists and its
    resource type is invalid for this operation.
409 InvalidFlushOperation The resource was created or modified by the Blob Service API and
    cannot be written to by the Data Lake Storage Service API.
409 InvalidRenameSourcePath The source directory cannot be the same as the destination
    directory, nor can the destination be a subdirectory of the source directory.
409 InvalidSourceOrDestinationResourceType The source and destination resource type must be
    identical.
409 PathAlreadyExists The specified path already exists.
409 PathConflict The specified path, or an element of the path, exists and its resource type is
    invalid for this operation.
409 ResourceTypeMismatch The resource type specified in the request does not match the type of
    the resource.
409 SourcePathIsBeingDeleted The specified source path is marked to be deleted.
409 LeaseAlreadyPresent There is already a lease present.
409 LeaseIdMismatchWithLeaseOperation The lease ID specified did not match the lease ID for the
    resource with the specified lease operation.
409 LeaseIsAlreadyBroken The lease has already been broken and cannot be broken again.
409 LeaseIsBreakingAndCannotBeAcquired The lease ID matched, but the lease is currently in
    breaking state and cannot be acquired until it is broken.
409 LeaseIsBreakingAndCannotBeChanged The lease ID matched, but the lease is currently in
    breaking state and cannot be changed.
409 LeaseIsBrokenAndCannotBeRenewed The lease ID matched, but the lease has been broken
    explicitly and cannot be renewed.
409 LeaseNotPresentWithLeaseOperation The lease ID is not present with the specified lease
    operation.
412 AppendPositionConditionNotMet The append position condition specified was not met.
412 MaxBlobSizeConditionNotMet The max blob size condition specified was not met.
412 LeaseIdMismatch The lease ID specified did not match the lease ID for the resource.
412 LeaseIdMissing There is currently a lease on the resource and no lease ID was specified in
    the request.
412 LeaseLost A lease ID was specified, but the lease for the resource has expired.
412 LeaseNotPresent There is currently no lease on the resource.
412 ConditionNotMet The condition specified using HTTP conditional header(s) is not met.
412 SourceConditionNotMet The source condition specified using HTTP conditional header(s) is not
    met.
416 InvalidRange The range specified is invalid for the current size of the resource.
500 InternalError The server encountered an internal error. Please retry the request.
500 OperationTimedOut The operation could not be completed within the permitted time.
503 ServerBusy Operations per second is over the account limit.
"""

CODES: Mapping[str, tuple[int, str]] = {
    code: (int(status), " ".join(words.split()))
    for status, code, words in re.findall(r"^(\d+) (\w+) (.*(?:\n .*)*)", _TABLE, re.MULTILINE)
}
"""Code -> status and message."""

OPERATIONS = CODES["ServerBusy"][1]

BUSY = (
    OPERATIONS,
    "Ingress is over the account limit.",
    "Egress is over the account limit.",
    "The server is currently unable to receive requests. Please retry your request.",
)
"""The messages of ``ServerBusy``: Hadoop's client tells the kinds apart by the exact text."""


class Refusal(Exception):  # noqa: N818  an answer of the service, no error of this package
    """Raised when the service rejects a request.

    Args:
        status: HTTP status.
        code: value of ``x-ms-error-code``.
        message: message in the service's words.
        headers: further response headers, named as on the wire.
    """

    def __init__(
        self, status: int, code: str, message: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}
        super().__init__(status, code, message)

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.message}"


def refusal(
    code: str, message: str | None = None, headers: Mapping[str, str] | None = None
) -> Refusal:
    """Return the refusal with this code, by default in the service's words.

    A code that is not in ``CODES`` has the status 500.
    """
    status, words = CODES.get(code, (500, code))
    return Refusal(status, code, words if message is None else message, headers)
