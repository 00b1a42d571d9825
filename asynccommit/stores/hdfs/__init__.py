"""HDFS, and what speaks its protocol."""
