"""What other tools remember, brought into the memory: exports and folders in, Markdown files below
`memory/imports/` out.
"""
