"""The heartbeat: a model goes through a checklist and curates MEMORY.md, on a schedule."""
