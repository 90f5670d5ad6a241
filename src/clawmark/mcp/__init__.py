"""The MCP server: tools, resources and a prompt over standard input and output or streamable HTTP.

What the tools do is in `clawmark.agent.tools`, the protocol is in the `mcp` SDK. These modules add
strict parsing, access checks, and limits on connections, sessions and unread output."""
