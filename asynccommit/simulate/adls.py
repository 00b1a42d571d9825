"""Simulate commits on an account of ADLS Gen2."""

from __future__ import annotations

import sys
import zlib

from asynccommit.simulate.model import PATIENCE, Site, StoreKind
from asynccommit.stores.base import Info
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.adls.nodes import Node, find, link
from asynccommit.testing.models.adls.store import SimStore
from asynccommit.testing.models.fault_rules import ADLS as DIALECT
from asynccommit.testing.models.fault_rules import FaultInjector

FILESYSTEM = "data"
_NEAR = 1024  # number of recently used directories that are cached


class PackedAdls(Node):
    """An unchanging file stored compressed, such as a large manifest."""

    __slots__ = ("packed",)
    packed: bytes

    @classmethod
    def of(cls, blank: Node, data: bytes) -> PackedAdls:
        """Return a file with ``data``, replacing the node ``blank``."""
        packed = cls(None, blank.version, blank.created)
        packed.size = len(data)
        packed.packed = zlib.compress(data, 1)
        return packed

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """See ``Node.read``."""
        return zlib.decompress(self.packed)[start : self.size if end is None else end]


class _AdlsModelStore(SimStore):
    """The model as a store that counts bytes written and directories renamed."""

    written = 0
    renamed_directories = 0

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """See ``Store.rename``."""
        if etag is None:  # else it is of a file
            node = find(self._account.head_filesystem(FILESYSTEM).root, source[1:])
            self.renamed_directories += node is not None and node.is_dir
        await super().rename(source, dest, replace=replace, etag=etag, token=token)

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        """See ``Store.put``."""
        info = await super().put(path, data, overwrite=overwrite, token=token)
        self.written += len(data)
        return info


class Adls:
    """One filesystem of an account; see ``Model``."""

    refused = 0  # The limit is part of the weather.

    @property
    def renamed_directories(self) -> int:
        """See ``Model.renamed_directories``."""
        return self.store.renamed_directories

    def __init__(self, site: Site) -> None:
        host = site.host
        self.dest = parse_url(f"abfs://{FILESYSTEM}@simulated.dfs.core.windows.net/table")
        self.account = AdlsAccount("simulated", now=host.now, new_id=site.seeds.ids("account"))
        self.account.create_filesystem(FILESYSTEM)
        self.weather = FaultInjector(site.seeds.rng("weather"), host.clock, site.climate, DIALECT)
        options = {
            "account": self.account,
            "weather": self.weather,
            "patience": PATIENCE,
            "workers": site.in_flight,
        }
        self.store = _AdlsModelStore(self.dest, options)
        self._near: dict[str, Node] = {}

    def put_file(self, path: str, size: int) -> str:
        """See ``Model.put_file``."""
        node = self.account.new_node()
        node.size = size
        self._link(path, node)
        return node.etag

    def put_data(self, path: str, data: bytes) -> None:
        """See ``Model.put_data``."""
        self._link(path, PackedAdls.of(self.account.new_node(), data))

    def put_directory(self, path: str) -> None:
        """See ``Model.put_directory``."""
        self._directory(path)

    def files_in(self, path: str) -> int:
        """See ``Model.files_in``."""
        node = find(self.account.head_filesystem(FILESYSTEM).root, path[1:])
        return len(node.children or ()) if node is not None else 0

    def size(self) -> int:
        """See ``Model.size``: file bytes, directory entries and tokens."""
        root = find(self.account.head_filesystem(FILESYSTEM).root, self.dest.path[1:])
        children = {} if root is None else root.children or {}
        return self.store.written + sum(
            sys.getsizeof(node.children)
            + sys.getsizeof(node.names)
            + sum(sys.getsizeof(file.token) for file in (node.children or {}).values())
            for name, node in children.items()
            if node.is_dir and not name.startswith("_")
        )

    def _link(self, path: str, node: Node) -> None:
        directory, _, name = path.rpartition("/")
        link(self._near.get(directory) or self._directory(directory), name, node)

    def _directory(self, path: str) -> Node:
        if len(self._near) >= _NEAR:
            self._near.clear()
        node = self.account.create(FILESYSTEM, path[1:], directory=True)
        self._near[path] = node
        return node


ADLS = StoreKind(
    "adls",
    Adls,
    DIALECT,
    limit=20_000.0,
    counted="requests",
    in_flight=512,
    schemes=("abfs", "abfss", "az"),
)
"""The limit of an account in most Azure regions, and ``max_concurrency`` of a store there."""
