"""Memory plugins: the protocol, the memory slot, and the lifecycle hooks that plugins may have."""
