"""How much memory a piece of work takes, as far as the process tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.simulate import memory
from asynccommit.simulate.memory import Memory, MemoryGrowth

MANY = 64 * 1024 * 1024


def test_growth_is_seen() -> None:
    """A large allocation shows, also when it is given back."""
    growth = MemoryGrowth()
    held = bytearray(b"x" * MANY)
    del held

    assert growth.bytes() > MANY // 2


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="there is no such file")
def test_an_earlier_peak_does_not_count() -> None:
    """What was needed before is no part of it, nor does it hide what comes."""
    held = bytearray(b"x" * MANY)
    del held
    quiet = MemoryGrowth().bytes()

    assert quiet < MANY // 4


def test_without_proc_it_is_the_peak_of_the_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the system has no such files, its peak is what is known, and that is said."""
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "none")
    monkeypatch.setattr(memory, "_RESET", tmp_path / "none" / "none")
    growth = MemoryGrowth()

    assert growth.bytes() >= 0
    assert "ru_maxrss" in growth.how


def test_the_models_share_is_not_the_engines() -> None:
    """What the model keeps is taken off; never more than there is."""
    assert Memory(1, 100, 30, "").engine == 70
    assert Memory(1, 30, 100, "").engine == 0
    assert Memory(1, 100, 30, "so").to_json()["engine"] == 70
