"""The QMD backend: the program `qmd` 2.8 indexes and searches the files."""
