"""The committers: one file a protocol, found by name."""

from __future__ import annotations

COMMITTERS = {"manifest": "asynccommit.committers.manifest.ManifestCommitter"}
"""Name of a committer -> where its class is; imported when it is asked for."""
