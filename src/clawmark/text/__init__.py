"""Pure functions over strings: chunks, keywords, dates, transcripts, secrets, untrusted text."""
