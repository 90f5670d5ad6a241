"""A small agent that lives in a workspace: words in, answers out, and a memory that lasts longer
than the talk.

`talk` holds the conversation, `agent` asks the model, `files` are its hands, `history` is what it
has heard, and `compact` shortens that. Showing it to a person is left to `cli`. Needs the extra
`chat`."""
