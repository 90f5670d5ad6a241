"""Treat remembered text as data: recalled blocks, origin labels, injection flags."""
