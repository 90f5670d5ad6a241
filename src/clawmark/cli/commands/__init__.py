"""One module per verb, each with `add_arguments(parser)` and `run(args)`."""
