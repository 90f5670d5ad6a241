"""What the HTTP servers on this machine share: request checks, token files, connection limits."""
