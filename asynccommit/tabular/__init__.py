"""Files of tables that other engines write: names, partitions, Arrow."""
