"""The process that runs a commit: its event loop thread, its host, bounded concurrency."""
