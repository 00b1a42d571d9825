"""Emulators: servers on loopback over the models of the stores."""
