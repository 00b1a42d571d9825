"""Files of the commit protocols as bytes, without I/O."""
