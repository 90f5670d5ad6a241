"""Cut documents into chunks, by Markdown structure or as OpenClaw does."""
