"""The options of emulators that serve https, and a file for clients."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asynccommit.errors import OptionError

if TYPE_CHECKING:
    from asynccommit.testing.emulators.emulator import Serving

UseTls = Annotated[
    bool, typer.Option("--tls", help="Serve https, with a certificate made at the start.")
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        metavar="FILE",
        help="File for the CA certificate that clients must trust. Implies --tls. "
        "Default: a temporary file.",
    ),
]
TlsNames = Annotated[
    list[str] | None,
    typer.Option(
        "--tls-name",
        metavar="HOST",
        help="Host name of the certificate, beside this machine's own. Implies --tls. Repeatable.",
    ),
]


def wanted(tls: bool, file: Path | None, names: list[str] | None) -> bool | list[str]:
    """Return the ``tls`` of an emulator for these options."""
    return names or (tls or file is not None)


@contextmanager
def ca_file(emulator: Serving, file: Path | None) -> Iterator[Path | None]:
    """Keep the emulator's CA certificate in a file inside the block.

    Yields the path, or ``None`` for an emulator that serves http. A file that the user named
    stays. Raises ``OptionError`` if it cannot be written, and as ``prepare_tls``.
    """
    pem = emulator.prepare_tls().ca_pem
    if pem is None:
        yield None
    elif file is not None:
        _write(file, pem)
        yield file.absolute()
    else:
        with tempfile.TemporaryDirectory(prefix="asynccommit-emulator-") as folder:
            made = Path(folder, "ca.pem")
            _write(made, pem)
            yield made


def _write(file: Path, pem: bytes) -> None:
    """Write the file in one step, for programs that wait for it."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        part.write_bytes(pem)
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OptionError(f"--tls-ca {file} cannot be written: {error.strerror}") from error


def fact(ca: Path | None) -> dict[str, str]:
    """Return the certificate for a program."""
    return {} if ca is None else {"ca_file": str(ca)}


def row(ca: Path | None) -> dict[str, str]:
    """Return the certificate for a person."""
    return {} if ca is None else {"CA certificate": str(ca)}


def how_to_trust(ca: Path) -> list[str]:
    """Return how clients are made to trust the certificate."""
    return [
        "",
        "Python's clients trust the certificate with:",
        f"  SSL_CERT_FILE={ca} REQUESTS_CA_BUNDLE={ca}",
        "and a JVM after the first line, with the second:",
        f"  keytool -importcert -noprompt -file {ca} -keystore trust.p12 -storepass changeit",
        "  -Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit",
    ]
