"""Keep the state of an emulator in a folder, from one run to the next.

The state is one file, which each save replaces as a whole: after a crash it is that of the last
save. Only classes of the models are read back from it; a file that is damaged, or of another
version, is refused.
"""

from __future__ import annotations

import copyreg
import hashlib
import io
import json
import os
import pickle
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from asynccommit.errors import OptionError
from asynccommit.version import __version__

_FORMAT = 2
_LONGEST_HEAD = 4096
_CLASSES = ("asynccommit.testing.models.", "asynccommit.testing.emulators.adls.blocks")
_HERE = __name__
_PLAIN = frozenset({"set", "frozenset", "bytearray"})
_REMEDY = "name another folder, or delete the file"


class StateFolder:
    """A folder with the state of one emulator, locked for others.

    Args:
        path: folder; created if it does not exist.
        kind: of emulator, which is the name of the file.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self._folder = Path(path)
        self._kind = kind
        self._lock: IO[bytes] | None = None

    @property
    def file(self) -> Path:
        """The file of the state."""
        return self._folder / f"{self._kind}.state"

    def open(self) -> Any:
        """Lock the folder and return the state; ``None`` if there is none yet.

        Raises ``OptionError`` if the folder is in use, or the file cannot be read.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self._folder / f"{self._kind}.lock").open("ab")
            _lock(self._lock)
            data = self.file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.close()
            raise OptionError(f"{self._folder}: {error.strerror or error}") from None
        try:
            return self._read(data)
        except OptionError:
            self.close()
            raise

    def save(self, content: bytes) -> None:
        """Replace the state; it is on disk when this returns. Raises ``OSError``."""
        head = {
            "format": _FORMAT,
            "kind": self._kind,
            "version": __version__,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        new = self.file.with_suffix(".new")
        with new.open("wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.file)
        with suppress(OSError):  # Windows opens no folders
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Let others use the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _read(self, data: bytes) -> Any:
        line, _, content = data.partition(b"\n")
        try:
            head = json.loads(line[:_LONGEST_HEAD])
            form, kind, digest = head["format"], head["kind"], head["sha256"]
        except (ValueError, KeyError, TypeError):
            raise OptionError(f"{self.file} is not a state of an emulator: {_REMEDY}") from None
        if form != _FORMAT or kind != self._kind:
            raise OptionError(f"{self.file} has the state of {kind}, format {form}: {_REMEDY}")
        if hashlib.sha256(content).hexdigest() != digest:
            raise OptionError(f"{self.file} is damaged: its checksum is wrong; {_REMEDY}")
        try:
            return _Unpickler(io.BytesIO(content)).load()
        except (pickle.UnpicklingError, AttributeError, ImportError, TypeError) as error:
            version = head.get("version")
            raise OptionError(
                f"{self.file} was saved by version {version} and cannot be read ({error}): "
                f"{_REMEDY}"
            ) from None


def packed(state: object) -> bytes:
    """Return a state as bytes."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = {**copyreg.dispatch_table, MappingProxyType: _reduced}
    pickler.dump(state)
    return buffer.getvalue()


def _reduced(values: Mapping[Any, Any]) -> tuple[Any, ...]:
    return read_only, (dict(values),)


def read_only(values: dict[Any, Any]) -> Mapping[Any, Any]:
    """Return a mapping that cannot be changed, as it was when it was saved."""
    return MappingProxyType(values)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" and name in _PLAIN:
            return super().find_class(module, name)
        if (module, name) == (_HERE, "read_only"):
            return read_only
        found: Any = None
        if module.startswith(_CLASSES) and "." not in name:
            found = super().find_class(module, name)
        if not isinstance(found, type) or not found.__module__.startswith(_CLASSES):
            raise pickle.UnpicklingError(f"{module}.{name} is not part of a state")
        return found


def _lock(file: IO[bytes]) -> None:
    """Lock a file until it is closed.

    Raises ``OSError`` if another process has locked it."""
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(0, "another emulator uses this folder") from None
