"""DuckDB, polled each second."""
