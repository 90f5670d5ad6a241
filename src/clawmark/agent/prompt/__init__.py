"""What a session sees of its memory without asking: system prompt and recall."""
