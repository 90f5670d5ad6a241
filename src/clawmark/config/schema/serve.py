"""The settings of `clawmark serve`."""

from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key


class RateLimits(NamedTuple):
    """`serve.rateLimits`: requests in a minute, counted by each process; 0 switches a limit off."""

    per_token: Annotated[int, Key("How many requests a token may make in a minute.")] = 1200
    per_address: Annotated[
        int,
        Key(
            "How many requests an address may make in a minute; a refused token counts as ten.",
        ),
    ] = 6000


class ServeOptions(NamedTuple):
    """`serve`: where the server of a team's memory listens, and its limits."""

    host: Annotated[
        str,
        Key(
            "The IP address to listen on; one that other machines can reach needs `publicUrl` "
            "and `trustedProxies`.",
        ),
    ] = "127.0.0.1"
    port: Annotated[int, Key("The port; 0 chooses a free one.", high=65535)] = 8379
    workers: Annotated[int, Key("How many processes share the port.", low=1, high=64)] = 1
    public_url: Annotated[
        str,
        Key("The https address of the reverse proxy under which clients see it.", kind="url"),
    ] = ""
    trusted_proxies: Annotated[
        tuple[str, ...],
        Key(
            "IP addresses or networks of reverse proxies, whose X-Forwarded-For is believed; "
            "loopback ones always are.",
            kind="texts",
        ),
    ] = ()
    connections: Annotated[
        int,
        Key("How many connections to the database a process may open.", low=1, high=500),
    ] = 8
    max_body_bytes: Annotated[
        int, Key("How large the body of a request may be.", low=1024, high=1 << 30, kind="size")
    ] = 16 << 20
    request_seconds: Annotated[
        int,
        Key("Seconds for a request to arrive, and for a statement in the database.", low=1),
    ] = 30
    shutdown_seconds: Annotated[
        int, Key("Seconds that running requests get to finish when the server stops.")
    ] = 20
    embed: Annotated[
        bool, Key("Whether the server makes missing vectors of passages in the background.")
    ] = True
    access_log: Annotated[
        bool, Key("Whether each request is a line on standard error, without its text and token.")
    ] = True
    rate_limits: RateLimits = RateLimits()
