"""The public surface of the package: what programs may import, with the names in ``__all__``."""

PUBLIC = (
    "asynccommit",
    "asynccommit.arrow",
    "asynccommit.daft",
    "asynccommit.dask",
    "asynccommit.duckdb",
    "asynccommit.engine",
    "asynccommit.hive",
    "asynccommit.loadtest",
    "asynccommit.mapreduce",
    "asynccommit.otel",
    "asynccommit.parallel",
    "asynccommit.polars",
    "asynccommit.prometheus",
    "asynccommit.ray",
    "asynccommit.simulate",
    "asynccommit.spark",
    "asynccommit.stocator",
    "asynccommit.streaming",
    "asynccommit.sync",
    "asynccommit.testing",
)
