"""The heartbeat: a model, started by a scheduler, goes through a checklist and curates MEMORY.md."""
