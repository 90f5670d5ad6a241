"""Configurations as people have them: comments, trailing commas, CRLF, tabs, one line, a BOM,
nothing at all.
"""

from __future__ import annotations

JSON: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "blank": b"\n\n",
    "no-entries": b"{}",
    "plain": b'{\n  "theme": "dark",\n  "model": "opus"\n}\n',
    "no-final-newline": b'{\n  "autoUpdates": false\n}',
    "four-spaces": b'{\n    "env": {\n        "API_TOKEN": "abc"\n    },\n    '
    b'"permissions": {"allow": ["Bash(ls:*)"]}\n}\n',
    "tabs-and-crlf": b'{\r\n\t"numStartups": 12,\r\n\t"projects": '
    b'{\r\n\t\t"/ann": {"allowedTools": []}\r\n\t}\r\n}\r\n',
    "one-line": b'{"numStartups":42,"tipsHistory":{"new-user-warmup":3}}',
    "unicode": '{\n  "greeting": "Grüße, 世界 🎉",\n  "путь": "/дом"\n}\n'.encode(),
    "bom": b'\xef\xbb\xbf{\n  "a": 1\n}\n',
    "empty-containers": b'{\n  "mcpServers": {},\n  "servers": { },\n  '
    b'"mcp": {\n  },\n  "hooks": {}\n}\n',
    "neighbours": b"""{
  "mcpServers": {
    "github": {"command": "npx", "args": ["-y", "server-github"], "env": {"TOKEN": "${TOKEN}"}}
  },
  "servers": {
    "files": {"type": "stdio", "command": "files"}
  },
  "mcp": {"servers": {"docs": {"command": "docs"}}},
  "hooks": {
    "SessionStart": [
        {"matcher": "startup", "hooks": [{"type": "command", "command": "echo hello"}]}
    ],
    "PreCompact": [],
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}
    ]
  }
}
""",
}
"""What every JSON host may have; strict JSON."""

JSONC: dict[str, bytes | None] = {
    "comments": b"""// my servers
{ // all of them
  /* the first
     one */
  "mcpServers": { // local
    // files, read only
    "files": { "command": "files", }, // keep
  },
  "servers": {
    "files": { "command": "files" } // no comma here
    // and a last word
  },
  "mcp": { /* none yet */ },
}
// the end
""",
    "json5": b"""{
  // OpenClaw style
  agents: { defaults: { workspace: '~/agent', }, },
  mcp: { servers: { 'my files': { command: "files" }, }, },
  hooks: { internal: { enabled: true } },
}
""",
    "crlf-comments": b'{\r\n  // one\r\n  "mcp": { "servers": {}, }, // two\r\n}\r\n',
}
"""What hosts with comments may have as well."""

TOML: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "blank": b"\n",
    "plain": b'model = "gpt-5"\napproval_policy = "on-request"\n',
    "no-final-newline": b'model = "gpt-5"',
    "crlf": b'model = "gpt-5"\r\n\r\n[features]\r\nweb_search = true\r\n',
    "comments": b'# mine\nmodel = "gpt-5" # the big one\n\n[tui] # '
    b"looks\nnotifications = true\n# the end\n",
    "neighbours": b'[mcp_servers.gh]\ncommand = "npx"\nargs = ["-y", '
    b'"server"]\n\n[mcp_servers.gh.env]\nTOKEN = "x"\n',
    "hooks": (
        b"[[hooks.SessionStart]]\n\n[[hooks.SessionStart.hooks]]\n"
        b'type = "command"\ncommand = "ls"\n'
    ),
    "trusted": b'[hooks.state."/p/hooks.json:stop:0:0"]\ntrusted_hash = '
    b'"sha256:ab"\n\n[hooks.state.x]\nenabled = false\n',
    "unicode-and-tabs": '[projects."/home/ann/grüße 世界"]\n\ttrust_level = "trusted"\n'.encode(),
    "bom": b'\xef\xbb\xbfmodel = "gpt-5"\n',
    "multi-line": b'notify = [\n  "ping",\n]\ninstructions = '
    b'"""\n[mcp_servers.clawmark] is only mentioned here\n"""\n',
}
