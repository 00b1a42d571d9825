"""A model of what stores do, in memory, with the faults that real ones have."""
