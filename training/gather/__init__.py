"""Gather training text from packages with permissive licences, and from our own templates."""
