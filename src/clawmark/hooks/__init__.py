"""Coding agents: what their hooks ask for in, what the memory answers out; and the edits that
connect them, reversibly.
"""
