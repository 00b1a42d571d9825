"""All randomness of a simulated run, from one root seed."""

from __future__ import annotations

import random
from collections.abc import Callable


class Seeds:
    """Generators by name. Each has numbers of its own, whoever else draws and how often.

    Args:
        root: what all of them follow from.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self._made: dict[str, random.Random] = {}

    def __repr__(self) -> str:
        return f"Seeds({self.root})"

    def rng(self, name: str) -> random.Random:
        """Return the one generator of this name."""
        if name not in self._made:
            # Of a text Random takes a digest, not Python's hash, which differs in each process.
            self._made[name] = random.Random(f"{self.root} {name}")
        return self._made[name]

    def ids(self, name: str) -> Callable[[], str]:
        """Return what makes ids of 32 hexadecimal digits."""
        rng = self.rng(name)
        return lambda: f"{rng.getrandbits(128):032x}"

    def next_numbers(self) -> dict[str, int]:
        """Return what each generator draws next: equal only if as much was drawn before."""
        return {name: rng.getrandbits(64) for name, rng in sorted(self._made.items())}
