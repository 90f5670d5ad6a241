"""Status, repair, verification, evaluation and sources of an index."""
