"""Hash tables, ledgers and lookup tables that operators share."""
