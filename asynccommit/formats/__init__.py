"""Files of the commit protocols as bytes: no module here reads or writes a store."""
