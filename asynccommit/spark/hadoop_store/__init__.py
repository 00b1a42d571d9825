"""A store over any filesystem that the driver's JVM can open."""
