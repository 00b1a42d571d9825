"""obstore's own tests against both emulators, for ``make witness ARGS=obstore-azure``.

No registry has them: ``WITNESS_OBSTORE`` is a clone of its repository. They use a store in memory,
in whose place they get one of an emulator; those that start an S3 server are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator
from tests.witness.expectations import Opened
from tests.witness.pypi_suites import Suite, fetch_extras, run_module

_MEMORY = "MemoryStore"


@contextmanager
def _serve_azure(folder: Path, *, hns: bool) -> Iterator[Mapping[str, str]]:
    with running_emulator(hns=hns) as emulator:
        yield {
            "WITNESS_STORE": "azure",
            "WITNESS_ENDPOINT": emulator.endpoint,
            "WITNESS_ACCOUNT": emulator.account,
            "WITNESS_KEY": emulator.key,
        }


@contextmanager
def _serve_gcs(folder: Path) -> Iterator[Mapping[str, str]]:
    with running_gcs_emulator() as emulator:
        yield {"WITNESS_STORE": "gcs", "WITNESS_ENDPOINT": emulator.endpoint}


_SUITE = partial(
    Suite,
    package="obstore",
    version="0.11.0",
    digest="",
    tests="tests",
    plugin="witness_obstore",
    extras=("obstore==0.11.0", "arro3-core==0.9.1", "obspec==0.1.0"),
    without=("test_delete.py::test_delete_prefix",),
)
SUITES = (
    _SUITE("obstore-azure", serve=partial(_serve_azure, hns=False)),
    _SUITE("obstore-azure-hns", serve=partial(_serve_azure, hns=True)),
    _SUITE("obstore-gcs", serve=_serve_gcs),
)


@contextmanager
def opened(suite: Suite) -> Iterator[Opened]:
    """Yield the modules of the clone that use a store in memory, and a function that runs one.

    Raises ``UnsupportedError`` without a clone.
    """
    root = Path(os.environ.get("WITNESS_OBSTORE", "-"))
    if not (root / suite.tests).is_dir():
        raise UnsupportedError(
            "set WITNESS_OBSTORE to the folder of a clone of developmentseed/obstore, "
            f"at its version {suite.version}"
        )
    modules = [
        path for path in (root / suite.tests).glob("test_*.py") if _MEMORY in path.read_text()
    ]
    names = sorted(path.stem for path in modules)
    yield names, partial(run_module, suite=suite, root=root, extras=fetch_extras(suite))
