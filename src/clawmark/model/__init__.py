"""The values that packages exchange, and the error tree."""
