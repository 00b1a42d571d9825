"""Append blobs: blocks at the end, their number, and the seal."""

from __future__ import annotations

import hashlib

import pytest

from asynccommit.testing.models.adls.append_blobs import MOST_BLOCKS, AppendLimits
from asynccommit.testing.models.adls.conditions import Conditions
from asynccommit.testing.models.adls.nodes import AppendBlob, Attributes
from tests.testing.models.adls.model import FS, Bench, refused

EMPTY = Attributes(append_blob=AppendBlob())


def make(account: Bench, path: str, attributes: Attributes = EMPTY) -> None:
    """Make an append blob as the blob endpoint does."""
    account.create(FS, path, attributes=attributes).more().by_blob = True


@pytest.fixture
def account() -> Bench:
    """An account with an empty append blob ``f`` and a file ``plain``."""
    account = Bench()
    make(account, "f")
    account.create(FS, "plain")
    return account


def test_blocks_are_counted_and_seen_at_once(account: Bench) -> None:
    """Each block has a new etag, and no flush follows."""
    etags = {account.append_block(FS, "f", data).etag for data in (b"one", b"two", b"three")}

    assert account.data("f") == b"onetwothree"
    assert account.head(FS, "f").append_blob == AppendBlob(blocks=3)
    assert len(etags) == 3


def test_only_an_append_blob_takes_blocks(account: Bench) -> None:
    """A file and a directory refuse them, and cannot be sealed."""
    account.create(FS, "d", directory=True, attributes=EMPTY)
    for path in ("plain", "d"):
        with refused(409, "InvalidBlobType"):
            account.append_block(FS, path, b"x")
        with refused(409, "InvalidBlobType"):
            account.seal(FS, path)
    with refused(404, "PathNotFound"):
        account.append_block(FS, "nothing", b"x")


@pytest.mark.parametrize(
    "limits, code",
    [
        (AppendLimits(position=2), "AppendPositionConditionNotMet"),
        (AppendLimits(position=4), "AppendPositionConditionNotMet"),
        (AppendLimits(most=4), "MaxBlobSizeConditionNotMet"),
        (AppendLimits(most=1), "MaxBlobSizeConditionNotMet"),
        (AppendLimits(position=2, most=1), "AppendPositionConditionNotMet"),
    ],
)
def test_limits_that_are_not_met_change_nothing(
    account: Bench, limits: AppendLimits, code: str
) -> None:
    """The blob has three bytes, and the block two."""
    account.append_block(FS, "f", b"one")

    with refused(412, code):
        account.append_block(FS, "f", b"xy", limits=limits)

    assert account.data("f") == b"one"
    assert account.head(FS, "f").append_blob == AppendBlob(blocks=1)


def test_limits_that_are_met(account: Bench) -> None:
    """The largest size is one that is allowed."""
    account.append_block(FS, "f", b"one", limits=AppendLimits(position=0, most=3))
    account.append_block(FS, "f", b"two", limits=AppendLimits(position=3, most=6))

    assert account.data("f") == b"onetwo"


def test_block_after_the_last_is_refused(account: Bench) -> None:
    """A blob has 50,000 blocks at most."""
    make(account, "f", Attributes(append_blob=AppendBlob(blocks=MOST_BLOCKS - 1)))
    account.append_block(FS, "f", b"!")

    with refused(409, "BlockCountExceedsLimit"):
        account.append_block(FS, "f", b"x")

    assert account.data("f") == b"!"
    assert account.head(FS, "f").append_blob == AppendBlob(blocks=50_000)


def test_blocks_that_are_damaged_or_empty_are_refused(account: Bench) -> None:
    """A block has some bytes, and those that its digest says."""
    digest = hashlib.md5(b"one", usedforsecurity=False).digest()
    with refused(400, "Md5Mismatch"):
        account.append_block(FS, "f", b"two", md5=digest)
    with refused(400, "InvalidHeaderValue"):
        account.append_block(FS, "f", b"")
    account.append_block(FS, "f", b"one", md5=digest)

    assert account.data("f") == b"one"


def test_seal_ends_the_appends(account: Bench) -> None:
    """It is asked for with conditions, may be repeated, and goes with a new file of the name."""
    account.append_block(FS, "f", b"one")
    with refused(412, "AppendPositionConditionNotMet"):
        account.seal(FS, "f", limits=AppendLimits(position=1))
    account.seal(FS, "f", limits=AppendLimits(position=3))
    account.seal(FS, "f")

    with refused(409, "BlobIsSealed"):
        account.append_block(FS, "f", b"x")
    make(account, "f")
    account.append_block(FS, "f", b"new")

    assert account.data("f") == b"new"


def test_conditions_and_leases_hold(account: Bench) -> None:
    """A block of another etag, or without the id of the lease, is refused."""
    etag = account.append_block(FS, "f", b"one").etag
    account.append_block(FS, "f", b"two", conditions=Conditions(if_match=etag))
    with refused(412, "ConditionNotMet"):
        account.append_block(FS, "f", b"x", conditions=Conditions(if_match=etag))
    lease = account.lease(FS, "f", "acquire", duration=-1).id
    with refused(412, "LeaseIdMissing"):
        account.append_block(FS, "f", b"x")
    account.append_block(FS, "f", b"!", conditions=Conditions(lease=lease))

    assert account.data("f") == b"onetwo!"


def test_kind_goes_with_a_rename_and_not_with_a_new_file(account: Bench) -> None:
    """A moved append blob can be appended to; a file written over it is an ordinary one."""
    account.append_block(FS, "f", b"one")
    account.rename(FS, "g", FS, "f")
    account.append_block(FS, "g", b"two")
    assert account.data("g") == b"onetwo"

    account.create(FS, "g")
    with refused(409, "InvalidBlobType"):
        account.append_block(FS, "g", b"x")


def test_appends_by_position_are_at_the_end(account: Bench) -> None:
    """An append of the dfs endpoint is a block; one that was done already is refused."""
    account.create(FS, "g", attributes=EMPTY)
    account.append(FS, "g", 0, b"one")
    with refused(400, "InvalidQueryParameterValue"):
        account.append(FS, "g", 0, b"one")
    account.flush(FS, "g", 3)

    assert account.data("g") == b"one"
    assert account.head(FS, "g").append_blob == AppendBlob(blocks=1)
    account.seal(FS, "g")
    with refused(409, "BlobIsSealed"):
        account.append(FS, "g", 3, b"x")


def test_only_the_endpoint_that_made_a_file_appends_to_it(account: Bench) -> None:
    """The service keeps the two apart; a new file of the name may be of the other one."""
    account.create(FS, "g", attributes=EMPTY)
    with refused(409, "BlobOperationNotSupported"):
        account.append_block(FS, "g", b"x")
    with refused(409, "InvalidAppendOperation"):
        account.append(FS, "f", 0, b"x")
    with refused(409, "InvalidFlushOperation"):
        account.flush(FS, "f", 0)

    account.create(FS, "f")
    account.append(FS, "f", 0, b"one", flush=True)
    assert account.data("f") == b"one"
