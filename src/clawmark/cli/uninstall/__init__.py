"""Uninstall: find what Clawmark has made on this machine, and remove it."""
