"""Check the customer-provided keys and encryption scopes of requests.

Nothing is encrypted: of a key its digest is kept, and a later request must give the same key. As
Hadoop's tests expect, moving, deleting, listing and access control need no key.
"""

from __future__ import annotations

from asynccommit.testing.models.adls.nodes import Cipher, Filesystem, Node
from asynccommit.testing.models.adls.refusals import refusal

PLAIN = Cipher()


def cipher_of(node: Node) -> Cipher:
    """Return the encryption of a path."""
    return PLAIN if node.extra is None else node.extra.cipher or PLAIN


def check_cipher(node: Node, given: Cipher) -> None:
    """Check that a request may read or change the content of a file."""
    own = cipher_of(node)
    if node.is_dir or (own is PLAIN and given is PLAIN):
        return
    if own.key and not given.key:
        raise refusal("BlobUsesCustomerSpecifiedEncryption")
    if given.key and not own.key:
        raise refusal("BlobDoesNotUseCustomerSpecifiedEncryption")
    if own.key != given.key or (given.scope and own.scope != given.scope):
        raise refusal("BlobCustomerSpecifiedEncryptionMismatch")


def new_cipher(found: Filesystem, given: Cipher | None, *, directory: bool) -> Cipher | None:
    """Return the encryption of a new path, with the default of its filesystem."""
    given = given or PLAIN
    if found.scope is not None and found.scope_fixed and given.scope not in (None, found.scope):
        raise refusal("RequestForbiddenByContainerEncryptionPolicy")
    scope = given.scope or (None if given.key else found.scope)
    kept = Cipher(None, scope) if directory else given._replace(scope=scope)
    return None if kept == PLAIN else kept
