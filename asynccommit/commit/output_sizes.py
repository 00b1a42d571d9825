"""The files and bytes of a job by directory, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asynccommit.results import Partition

MAX_DIRECTORIES = 10_000
"""Number of directories that are counted apart; the others are counted together."""


class OutputSizes:
    """A count of files and bytes for each directory of the output."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._others = [0, 0]
        self.files = 0
        self.bytes = 0

    def add(self, files: Iterable[tuple[str, int]]) -> None:
        """Count files by path and size."""
        counts = self._counts
        for path, size in files:
            directory = path.rpartition("/")[0]
            count = counts.get(directory)
            if count is None:
                count = [0, 0] if len(counts) < MAX_DIRECTORIES else self._others
                if count is not self._others:
                    counts[directory] = count
            count[0] += 1
            count[1] += size
            self.files += 1
            self.bytes += size

    @property
    def directories(self) -> int:
        """Return the number of directories, at most ``MAX_DIRECTORIES``."""
        return len(self._counts)

    def largest(self, root: str, number: int) -> Sequence[Partition]:
        """Return the directories with the most bytes; the others are added up.

        Args:
            root: paths below it are shown relative to it.
            number: number of directories to return.
        """
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1][1], item[0]))
        found = [Partition(_below(root, path), *counts) for path, counts in ordered[:number]]
        rest = [counts for _, counts in ordered[number:]]
        files = sum(counts[0] for counts in rest) + self._others[0]
        if files:
            size = sum(counts[1] for counts in rest) + self._others[1]
            found.append(Partition("", files, size))
        return tuple(found)


def _below(root: str, path: str) -> str:
    if path == root:
        return "."
    return path.removeprefix(root.rstrip("/") + "/")
