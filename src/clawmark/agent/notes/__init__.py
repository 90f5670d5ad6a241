"""Session notes, and the upkeep of MEMORY.md."""
