"""Turn passages and queries into the words of the keyword index."""
