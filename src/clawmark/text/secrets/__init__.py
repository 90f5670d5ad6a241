"""Recognize secrets in text and mask them."""
