"""Chat models: the protocol, the names of models, and requests to them."""
