"""Transcripts of an agent: finding them, reading their lines and their messages."""
