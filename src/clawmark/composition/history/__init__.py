"""Journal, versions, trust, review and forgetting: built from the settings, and reported."""
