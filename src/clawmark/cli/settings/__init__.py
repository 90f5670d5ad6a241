"""Show and change settings: values in words, the configuration file, and changes to it."""
