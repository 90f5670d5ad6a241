"""Adapters for agent SDKs: one module each, which imports the SDK when it is imported."""
