"""What the Python Data Source is made of; the classes that Spark sees are in ``datasource.py``."""
