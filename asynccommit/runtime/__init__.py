"""Event loop thread, host, bounded concurrency and lazy imports."""
