"""The features of the emulators that docs/emulators.md tells, tried with clients."""

from __future__ import annotations

from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.features import AZURE, GOOGLE, Azure, Google, table


def test_features_of_adls(adls_emulator_thread: EmulatorThread) -> None:
    """All but snapshots and page blobs, which are refused."""
    found = table(AZURE, Azure(adls_emulator_thread.connection_string))

    assert {name for name, there, _ in found if not there} == {
        "blobs: page blobs",
        "blobs: snapshots",
    }


def test_features_of_gcs(gcs_server: GcsEmulatorThread) -> None:
    """All but ACLs, which are refused."""
    found = table(GOOGLE, Google(gcs_server.endpoint))

    assert {name for name, there, _ in found if not there} == {
        "ACLs",
    }
