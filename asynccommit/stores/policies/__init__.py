"""What is done around every request to a store: one policy a file, one funnel in ``base``."""
