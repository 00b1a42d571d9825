"""Tools for tests: emulators, models, virtual time, a pytest plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asynccommit.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from asynccommit.runtime.host import Host
    from asynccommit.testing.emulators.adls.emulator import (
        AdlsEmulator,
        EmulatorThread,
        running_emulator,
    )
    from asynccommit.testing.emulators.gcs.emulator import (
        GcsEmulator,
        GcsEmulatorThread,
        running_gcs_emulator,
    )
    from asynccommit.testing.emulators.s3_express.emulator import (
        ExpressEmulator,
        ExpressEmulatorThread,
        running_express_emulator,
    )
    from asynccommit.testing.emulators.s3_proxy.emulator import (
        S3Proxy,
        S3ProxyThread,
        running_s3_proxy,
    )
    from asynccommit.testing.models.adls.store import SimStore
    from asynccommit.testing.models.fault_rules import Climate, Fault, FaultInjector
    from asynccommit.testing.models.latency import Latency, RequestLimit
    from asynccommit.testing.models.virtual_loop import DeadlockError, run_virtual
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "emulators.adls.emulator": ["AdlsEmulator", "EmulatorThread", "running_emulator"],
            "emulators.gcs.emulator": ["GcsEmulator", "GcsEmulatorThread", "running_gcs_emulator"],
            "emulators.s3_express.emulator": [
                "ExpressEmulator",
                "ExpressEmulatorThread",
                "running_express_emulator",
            ],
            "emulators.s3_proxy.emulator": ["S3Proxy", "S3ProxyThread", "running_s3_proxy"],
            "models.adls.store": ["SimStore"],
            "models.fault_rules": ["Climate", "Fault", "FaultInjector"],
            "models.latency": ["Latency", "RequestLimit"],
            "models.virtual_loop": ["DeadlockError", "run_virtual"],
            "asynccommit.runtime.host": ["Host"],
        },
    )

__all__ = [
    "AdlsEmulator",
    "Climate",
    "DeadlockError",
    "EmulatorThread",
    "ExpressEmulator",
    "ExpressEmulatorThread",
    "Fault",
    "FaultInjector",
    "GcsEmulator",
    "GcsEmulatorThread",
    "Host",
    "Latency",
    "RequestLimit",
    "S3Proxy",
    "S3ProxyThread",
    "SimStore",
    "run_virtual",
    "running_emulator",
    "running_express_emulator",
    "running_gcs_emulator",
    "running_s3_proxy",
]
