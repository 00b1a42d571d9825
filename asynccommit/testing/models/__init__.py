"""Models of the stores in memory, their faults, and a clock that jumps."""
