"""PostgreSQL: a private cluster, polled each second or with triggers."""
