"""A table in an emulated directory bucket."""

from __future__ import annotations

from collections.abc import Mapping

from asynccommit.testing import ExpressEmulator, ExpressEmulatorThread
from asynccommit.testing.models.s3.directory_bucket import DirectoryService
from tests.crash_real.places import tree_of
from tests.support.express import BUCKET


class ExpressPlace:
    """A table in a directory bucket. See ``Place``.

    What something is below of is a directory, as is a placeholder.
    """

    def __init__(self, emulator: ExpressEmulatorThread, rate: int = 1500) -> None:
        self._emulator = emulator
        self.url = f"s3://{BUCKET}/table"
        self.rate = rate
        self._saved: DirectoryService | None = None
        self.storage = {"endpoint_url": emulator.endpoint, "key": "test", "secret": "test"}
        self.arguments = tuple(
            word for key, value in self.storage.items() for word in ("-s", f"{key}={value}")
        )

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write files."""

        def write(it: ExpressEmulator) -> None:
            for name, data in files.items():
                it.service.bucket(BUCKET).put(f"table/{name}", data, algorithm="CRC32")

        self._emulator.do(write)

    def save(self) -> None:
        """Remember the bucket as it is."""
        self._saved = self._emulator.do(lambda it: it.service.copy())

    def restore(self) -> None:
        """Make it so again; objects keep their etags."""
        assert self._saved is not None
        buckets = self._saved.copy().buckets
        self._emulator.do(lambda it: setattr(it.service, "buckets", buckets))

    def busy(self) -> bool:
        """Return whether the store may still execute requests of a client."""
        return bool(self._emulator.do(lambda it: it.stats()["connections"]))

    def _files(self) -> dict[str, bytes]:
        """Return the content of all objects of the table, by name."""
        found = self._emulator.do(lambda it: dict(it.service.bucket(BUCKET).objects))
        return {key.removeprefix("table/"): one.data for key, one in found.items()}

    def tree(self) -> dict[str, str]:
        """Return all that is there."""
        found = self._files()
        placed = {name.rstrip("/"): "/" for name in found if name.endswith("/")}
        return {**placed, **tree_of({n: d for n, d in found.items() if not n.endswith("/")})}

    def names(self) -> list[str]:
        """Return the paths of all files, also while they move."""
        return [path for path, said in self.tree().items() if said != "/"]

    def marker(self) -> bytes | None:
        """Return what ``_SUCCESS`` says."""
        return self._files().get("_SUCCESS")
