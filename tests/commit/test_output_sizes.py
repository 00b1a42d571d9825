"""Files and bytes by directory."""

from __future__ import annotations

from asynccommit.commit.output_sizes import MAX_DIRECTORIES, OutputSizes
from asynccommit.results import Partition


def test_largest_directories_come_first_and_the_rest_is_added_up() -> None:
    """Directories are relative to the root; what is not named is one entry without a path."""
    sizes = OutputSizes()

    sizes.add([("/t/a/1", 5), ("/t/a/2", 5), ("/t/b/1", 100), ("/t/3", 1), ("/u/4", 2)])

    assert sizes.largest("/t", 2) == (
        Partition("b", 1, 100),
        Partition("a", 2, 10),
        Partition("", 2, 3),
    )
    assert sizes.largest("/t", 9)[2:] == (Partition("/u", 1, 2), Partition(".", 1, 1))


def test_memory_is_bounded() -> None:
    """More directories than the maximum are counted together."""
    sizes = OutputSizes()

    sizes.add((f"/t/{number}/part", 1) for number in range(MAX_DIRECTORIES + 7))

    assert sizes.directories == MAX_DIRECTORIES
    assert sizes.files == MAX_DIRECTORIES + 7
    assert sizes.largest("/t", MAX_DIRECTORIES)[-1] == Partition("", 7, 7)
