"""The streamable HTTP transport: the server, access control, and limits for its clients."""
