"""Hive: find duplicate task output, and publish the rest to a table."""
