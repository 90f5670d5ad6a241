"""What an agent sees and does: tools, prompt, sessions, flush, session notes, curation."""
