"""How the builtin backend works: sync, search and maintenance."""
