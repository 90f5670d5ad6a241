"""Complete answers to search, read, sync and status; today there is one backend, the built-in one."""
