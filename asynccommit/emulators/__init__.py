"""Former place of ``asynccommit.testing``, for one version."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module

_EMULATORS = "asynccommit.testing.emulators"
_MOVED = {
    "adls": f"{_EMULATORS}.adls.emulator",
    "config": f"{_EMULATORS}.config",
    "control": f"{_EMULATORS}.control",
    "gcs": f"{_EMULATORS}.gcs.emulator",
    "plugin": "asynccommit.testing.pytest_plugin",
    "proxy": f"{_EMULATORS}.s3_proxy.emulator",
    "server": f"{_EMULATORS}.server",
}

warnings.warn(
    "asynccommit.emulators is asynccommit.testing now: import the emulators from there",
    DeprecationWarning,
    stacklevel=2,
)
for _name, _module in _MOVED.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = import_module(_module)
