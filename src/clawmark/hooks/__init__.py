"""Hooks for coding agents, and the installation that connects them to the memory."""
