"""The heartbeat: a scheduler lets a model go through a checklist and look after MEMORY.md."""
