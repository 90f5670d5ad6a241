"""A small agent that lives in a workspace and remembers; needs the extra `chat`.

`chat` holds the conversation, `agent` asks the model, `file_tools` are its tools for the workspace,
`history` is the conversation and its transcript, and `compact` shortens it. The terminal is in
`cli`.
"""
