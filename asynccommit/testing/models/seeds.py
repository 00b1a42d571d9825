"""Derive all randomness of a simulated run from one root seed."""

from __future__ import annotations

import random
from collections.abc import Callable


class Seeds:
    """Named random generators, each independent of the use of the others.

    Args:
        root: seed of all generators.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self._made: dict[str, random.Random] = {}

    def __repr__(self) -> str:
        return f"Seeds({self.root})"

    def rng(self, name: str) -> random.Random:
        """Return the generator of this name; always the same one."""
        if name not in self._made:
            # For a text, Random uses a digest, not Python's hash, which differs in each process.
            self._made[name] = random.Random(f"{self.root} {name}")
        return self._made[name]

    def ids(self, name: str) -> Callable[[], str]:
        """Return a function that returns ids of 32 hexadecimal digits."""
        rng = self.rng(name)
        return lambda: f"{rng.getrandbits(128):032x}"

    def next_numbers(self) -> dict[str, int]:
        """Return the next number of each generator, to compare two runs.

        They are equal only if the same amount was drawn before.
        """
        return {name: rng.getrandbits(64) for name, rng in sorted(self._made.items())}
