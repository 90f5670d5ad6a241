"""Batch jobs of embedding services."""
