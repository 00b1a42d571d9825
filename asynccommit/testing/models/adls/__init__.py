"""The model of an ADLS account."""
