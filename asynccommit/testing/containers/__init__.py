"""The emulators as containers of testcontainers, in Python and Java."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.request import Request, urlopen

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

from asynccommit.testing.emulators.adls.auth import (
    DEVELOPMENT_ACCOUNT,
    DEVELOPMENT_KEY,
    connection_string,
)

__all__ = ["AdlsContainer", "GcsContainer"]


class _EmulatorContainer(DockerContainer):
    def __init__(self, image: str, command: Sequence[str], port: int, **more: Any) -> None:
        super().__init__(image, **more)
        self._inner = port
        self.with_exposed_ports(port)
        # On all addresses of the container, since its port is reached from outside of it.
        self.with_command([*command, "--address", "0.0.0.0", "--port", str(port), "--quiet"])
        self.waiting_for(HttpWaitStrategy(port, "/_emulator/stats").for_status_code(200))

    @property
    def port(self) -> int:
        """The port of the host that leads to the emulator."""
        return int(self.get_exposed_port(self._inner))

    @property
    def endpoint(self) -> str:
        """``http://HOST:PORT``, as this process reaches it."""
        return f"http://{self.get_container_host_ip()}:{self.port}"

    @property
    def control(self) -> str:
        """The URL of faults, weather, statistics and reset."""
        return f"{self.endpoint}/_emulator"

    def reset(self) -> None:
        """Forget what is stored and counted; faults are as at the start.

        Raises:
            urllib.error.URLError: The emulator cannot be reached.
        """
        with urlopen(Request(f"{self.control}/reset", method="POST"), timeout=30):
            pass


class AdlsContainer(_EmulatorContainer):
    """Run the emulator of an ADLS Gen2 account in a container.

    Args:
        image: The name of an image that ``Containerfile`` builds; none is published. It is pulled
            if the engine does not have it.
        filesystems: The filesystems to create at the start and at each ``reset``.
        options: More options of ``asynccommit emulate adls``.
        more: Arguments of ``DockerContainer``.
    """

    account = DEVELOPMENT_ACCOUNT
    key = DEVELOPMENT_KEY

    def __init__(
        self,
        image: str,
        *,
        filesystems: Sequence[str] = (),
        options: Sequence[str] = (),
        **more: Any,
    ) -> None:
        names = [text for name in filesystems for text in ("--filesystem", name)]
        super().__init__(image, ["emulate", "adls", *names, *options], 10004, **more)

    @property
    def url(self) -> str:
        """The URL of the account, of both endpoints."""
        return f"{self.endpoint}/{self.account}"

    @property
    def connection_string(self) -> str:
        """The connection string for Azure's clients, adlfs and asynccommit."""
        return connection_string(self.url, self.account, self.key)


class GcsContainer(_EmulatorContainer):
    """Run the emulator of Google Cloud Storage in a container.

    Args:
        image: As for ``AdlsContainer``.
        buckets: The buckets to create at the start and at each ``reset``.
        options: More options of ``asynccommit emulate gcs``.
        more: Arguments of ``DockerContainer``.
    """

    def __init__(
        self,
        image: str,
        *,
        buckets: Sequence[str] = (),
        options: Sequence[str] = (),
        **more: Any,
    ) -> None:
        names = [text for name in buckets for text in ("--bucket", name)]
        super().__init__(image, ["emulate", "gcs", *names, *options], 4443, **more)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment variable by which Google's clients find an emulator."""
        return {"STORAGE_EMULATOR_HOST": self.endpoint}
