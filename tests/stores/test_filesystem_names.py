"""Names that listings leave out."""

from __future__ import annotations

import pytest

from asynccommit.stores.filesystem_names import checksum_of, file_of, is_checksum, is_unlisted


@pytest.mark.parametrize(
    "name, unlisted",
    [
        (".f.crc", True),
        (".crc", True),
        (".a\n.crc", True),
        (".asynccommit-1-1.tmp", True),
        ("f.crc", False),
        (".f", False),
        (".tmp", False),
        (".asynccommit-probe-0f-1.tmp", True),
        ("asynccommit-1-1.tmp", False),
        (".asynccommit-1.tmp", False),
        (".asynccommit-1-1.tmp.parquet", False),
        ("", False),
    ],
)
def test_names_that_listings_leave_out(name: str, unlisted: bool) -> None:
    """Checksums and our temporary files are left out, nothing that only looks like them."""
    assert is_unlisted(name) is unlisted


def test_the_checksum_of_a_file() -> None:
    """The name of a checksum tells its file, and the other way round."""
    assert checksum_of("/t/day=1/part-0") == "/t/day=1/.part-0.crc"
    assert checksum_of("part-0") == ".part-0.crc"
    assert is_checksum(".part-0.crc")
    assert file_of(".part-0.crc") == "part-0"
