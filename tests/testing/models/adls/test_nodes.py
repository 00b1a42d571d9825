"""Customer-provided keys, encryption scopes and contexts: kept and compared, nothing encrypted."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.adls.account import Attributes
from asynccommit.testing.models.adls.nodes import PLAIN, Cipher, cipher_of
from tests.testing.models.adls.model import FS, Bench, refused

KEY = Cipher("digest", context="ctx")


def test_key_of_a_file_must_be_given() -> None:
    """Without, and with another, the request is refused; with the same it is not."""
    account = Bench()
    node = account.create(FS, "f", attributes=Attributes(cipher=KEY))

    with refused(409, "BlobUsesCustomerSpecifiedEncryption"):
        account.check_cipher(FS, "f", PLAIN)
    with refused(409, "BlobCustomerSpecifiedEncryptionMismatch"):
        account.check_cipher(FS, "f", Cipher("other"))
    account.check_cipher(FS, "f", Cipher("digest"))
    assert cipher_of(node) == KEY


def test_key_for_a_file_that_has_none() -> None:
    """It is refused; a missing file and a directory are not asked for keys."""
    account = Bench()
    account.file("d/f")
    with refused(409, "BlobDoesNotUseCustomerSpecifiedEncryption"):
        account.check_cipher(FS, "d/f", KEY)
    account.check_cipher(FS, "d", KEY)
    account.check_cipher(FS, "none", KEY)
    account.check_cipher("none", "f", KEY)


def test_file_that_is_made_again_has_the_new_encryption() -> None:
    """An overwrite needs no old key; a rename keeps it."""
    account = Bench()
    account.create(FS, "f", attributes=Attributes(cipher=KEY))
    moved = account.rename(FS, "g", FS, "f")
    assert cipher_of(moved) == KEY

    assert cipher_of(account.create(FS, "g")) is PLAIN
    account.check_cipher(FS, "g", PLAIN)


@pytest.mark.parametrize("fixed", [False, True])
def test_default_scope_of_a_filesystem(fixed: bool) -> None:
    """New files and directories have it; another is refused if it is fixed."""
    account = Bench()
    account.create_filesystem("scoped", scope="mine", scope_fixed=fixed)
    file = account.create("scoped", "d/f")
    other = Attributes(cipher=Cipher(scope="other"))

    assert cipher_of(file).scope == "mine"
    assert cipher_of(account.create("scoped", "e", directory=True)).scope == "mine"
    if fixed:
        with refused(403, "RequestForbiddenByContainerEncryptionPolicy"):
            account.create("scoped", "g", attributes=other)
    else:
        assert cipher_of(account.create("scoped", "g", attributes=other)).scope == "other"
    with refused(409, "BlobCustomerSpecifiedEncryptionMismatch"):
        account.check_cipher("scoped", "d/f", Cipher(scope="other"))
