"""The server of a team's memory: REST, MCP over HTTP, a web page, health checks and metrics.

Every request carries a token. The token names a caller and may narrow what the caller may do; the
database decides what the caller sees. A process keeps nothing about its clients between requests,
except how many requests they have made, so several of them can run behind a balancer."""
