"""A NameNode in memory: its rules, and a client of it that meets faults."""
