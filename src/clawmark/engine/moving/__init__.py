"""Moves an index from one store to another, and compares both row by row."""
