"""The graph of notes: what they refer to, who is near whom, and where each one is drawn."""
