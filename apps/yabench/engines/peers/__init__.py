"""Programs for other systems, each in a process of its own."""
