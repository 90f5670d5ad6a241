"""Transcripts as text: parse records, label messages, cut them into chunks."""
