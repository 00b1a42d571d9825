"""Task side of the commits by multipart uploads."""
