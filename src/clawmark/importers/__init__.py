"""Import the exports and notes of other tools as Markdown files below `memory/imports/`."""
