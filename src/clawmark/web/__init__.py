"""The web page of a memory: search, read, review and check it in a browser on this machine."""
