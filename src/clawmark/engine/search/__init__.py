"""Turns a question into cited hits: two legs, one score, and an account of every step."""
