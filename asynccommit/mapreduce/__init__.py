"""MapReduce: the markers of its application master's commit."""
