"""The REST interface: one table of routes, from which the OpenAPI description is made."""
