"""Rerankers: a local cross-encoder and remote services."""
