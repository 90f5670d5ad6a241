"""Remote embedding services: one module per provider, and what they share."""
