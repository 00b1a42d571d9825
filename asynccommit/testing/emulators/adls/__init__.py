"""The ADLS emulator."""
