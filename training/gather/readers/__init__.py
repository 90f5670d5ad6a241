"""Readers: one module for each kind of file that text is read from."""
