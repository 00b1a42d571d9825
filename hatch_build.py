"""Jars in the wheel of a release.

``ASYNCCOMMIT_RELEASE_SPARKS`` names the directories of Spark, one for each supported line, with the
separator of PATH between them. Without it the wheel has no jar, and each Spark's is compiled where
it is first used.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SPARKS = "ASYNCCOMMIT_RELEASE_SPARKS"


class Jars(BuildHookInterface):
    """Puts a jar of each Spark that the environment names into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the jars. An editable install has none."""
        homes = [Path(home) for home in os.environ.get(SPARKS, "").split(os.pathsep) if home]
        if not homes or version == "editable":
            return
        self._made = tempfile.TemporaryDirectory()
        jars = _module(Path(self.root))
        for home in homes:
            made = jars.bundle(jars.installed_spark(home), Path(self._made.name))
            self.app.display_info(f"{made.name} for the Spark in {home}")
            build_data["force_include"][str(made)] = f"asynccommit/spark/{jars.BUNDLED}/{made.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what is in the wheel now."""
        if hasattr(self, "_made"):
            self._made.cleanup()


def _module(root: Path) -> Any:
    """Return the module that compiles, without what its package imports: a build has none of it."""
    sys.path.insert(0, str(root))
    name = "asynccommit_jars"
    spec = spec_from_file_location(name, root / "asynccommit/spark/jars.py")
    if spec is None or spec.loader is None:
        raise RuntimeError(f"there is no jars.py below {root}")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
