"""Keeps the index in step with the workspace: a pure plan (disk × index), then its application in
short transactions.
"""
