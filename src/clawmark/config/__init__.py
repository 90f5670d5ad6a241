"""Configuration: where things are (`paths`), what is set (`schema`, `keys`), and how the files are
read (`load`).
"""
