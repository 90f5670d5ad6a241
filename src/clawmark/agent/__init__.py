"""What a memory does while a conversation goes on: context and prompt, flush, session notes,
upkeep.
"""
