"""Shared spaces of a team: searched, read and written by many people and agents."""
