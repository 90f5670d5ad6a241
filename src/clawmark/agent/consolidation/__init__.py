"""Consolidation: keep MEMORY.md short and true, from what the daily logs say. Rules come first."""
