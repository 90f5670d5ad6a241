"""The history of a workspace at work: recording versions, restoring files, taking writes back."""
