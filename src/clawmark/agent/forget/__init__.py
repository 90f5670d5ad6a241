"""Forget for good: a plan of every place where a text lives, its execution, and what is left."""
