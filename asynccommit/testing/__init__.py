"""Tools for tests: emulators of the stores, models in memory, virtual time, a pytest plugin."""
