"""Small bridges from agent SDKs to a memory: one module each, imported only by those who use that
SDK.

In: a `Memory`. Out: the object an SDK expects. What the memory does is left to `Memory`; nothing
here keeps state of its own beside the files. This package imports no SDK until one of its modules
is imported."""
