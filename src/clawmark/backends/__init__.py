"""Memory backends: the protocol and its implementations."""
