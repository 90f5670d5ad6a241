"""Versions of the files of a workspace, in a git repository in the state folder."""
