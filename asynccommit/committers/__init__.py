"""The committers: one file a protocol."""
