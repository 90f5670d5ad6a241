"""The LanceDB backend: recall over captured entries, with their vectors in a LanceDB table."""
