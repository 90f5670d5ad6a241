"""The memory for MCP hosts: tools, resources and a prompt over stdio or streamable HTTP.

In: an open memory and the session it is offered to. Out: answers on the wire. What the tools do is
left to `clawmark.agent.tools`, the protocol to the `mcp` SDK; here are the limits that keep a
hostile client out and a dead one from lingering."""
