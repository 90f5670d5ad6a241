"""Notes, names and transcripts that try to run scripts on the web page or to break it."""

from __future__ import annotations

import json
from pathlib import Path

from clawmark import Memory

RUN = "window.attacked=1"
EVIL = "http://evil.example"

ATTACKS = (
    f"<script>{RUN}</script>",
    f'<img src=x onerror="{RUN}">',
    f"<svg onload={RUN}><script>{RUN}</script></svg>",
    f'<svg><a href="javascript:{RUN}"><text>x</text></a><use href="{EVIL}/x.svg#y"/></svg>',
    f"<math><mtext></mtext><mglyph><style><img src=x onerror={RUN}></style></mglyph></math>",
    f'<iframe srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f'<object data="{EVIL}/x"></object><embed src="{EVIL}/x"><video src="{EVIL}/v"></video>',
    f"<details open ontoggle={RUN}><summary>x</summary></details>",
    f"<input autofocus onfocus={RUN}><body onload={RUN}>",
    f'"><script>{RUN}</script>',
    f"'-{RUN}-'",
    f"</title></textarea></style></pre></script><script>{RUN}</script>",
    f"[link](javascript:{RUN})",
    f"[link](JaVaScRiPt&#58;{RUN})",
    f"[link](java\tscript:{RUN})",
    f"[link](\x01javascript:{RUN})",
    "[link](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    f"[link](vbscript:{RUN})",
    "[link](file:///etc/passwd)",
    f"[ref][r]\n\n[r]: javascript:{RUN}",
    f"<javascript:{RUN}>",
    f"<a href=javascript:{RUN}>x</a>",
    f'[link]({EVIL} "x\\" onmouseover={RUN} y=\\"")',
    f"![picture]({EVIL}/pixel.png)",
    "![picture](//evil.example/pixel.png)",
    f"![picture](javascript:{RUN})",
    f"<style>main{{display:none}} body{{background:url({EVIL}/x)}}</style>",
    f'<p style="position:fixed;inset:0;background:url({EVIL}/x)">x</p>',
    f'<link rel="stylesheet" href="{EVIL}/x.css"><base href="{EVIL}/">',
    f'<meta http-equiv="refresh" content="0;url={EVIL}/">',
    f'<form action="{EVIL}"><button>send</button></form>',
    "{{ 7 * 191 }} {% include 'base.html' %} ${7*191}",
    "\u202etxet desrever\u202c \u2066isolated\u2069 \u200bzero\u200b width \ufeff",
    "\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x07\x08\x7f",
    "a\x00b \ud83d\ude00 \u0301\u0302\u0303 " + "z\u0301\u0302\u0303\u0304" * 60,
    "<!-- <script>window.attacked=1</script> --><![CDATA[x]]><?php x ?>",
)
HUGE = {
    "memory/line.md": "harpoon " + "word " * 200_000,
    "memory/unbroken.md": "harpoon " + "W" * 1_000_000,
    "memory/quotes.md": "> " * 20_000 + "harpoon",
    "memory/lists.md": "".join(f"{'  ' * depth}- harpoon\n" for depth in range(500)),
    "memory/brackets.md": "harpoon " + "[" * 30_000 + "](" * 10_000,
    "memory/stars.md": "harpoon " + "*a_" * 30_000,
    "memory/ticks.md": "harpoon " + "`" * 30_000 + "a",
    "memory/table.md": "harpoon\n\n" + "|a" * 500 + "|\n" + "|-" * 500 + "|\n" + "|b" * 500 + "|\n",
}
NAMES = (
    f"memory/<img src=x onerror={RUN}>.md",
    f"memory/\"onmouseover={RUN} x='.md",
    "memory/a&b;c#d?e%2e%2e.md",
    "memory/\u202egnp.exe.md",
    "memory/عربي ملاحظة.md",
    "memory/javascript:x.md",
)


def clean(text: str) -> str:
    """Return a text that can be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def write_attacks(workspace: Path, day: str) -> None:
    """Write the attacks as notes, as entries of a day, as names, and as huge files."""
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    entries = "".join(f"- harpoon {number}: {one}\n" for number, one in enumerate(ATTACKS))
    texts = {
        "MEMORY.md": f"# <script>{RUN}</script> harpoon\n\n{entries}",
        f"memory/{day}.md": f"# {day}\n\n{entries}",
        "memory/attacks.md": "\n\n".join(ATTACKS) + "\n\nharpoon\n",
        "memory/editable.md": "\n\n".join(one for one in ATTACKS if one.isprintable()) + "\n",
        **HUGE,
        **dict.fromkeys(NAMES, f"# <b onclick={RUN}>harpoon</b>\n\n[[attacks]]\n"),
    }
    for name, text in texts.items():
        (workspace / name).write_text(clean(text), encoding="utf-8", newline="")


def have_attacks(memory: Memory, key: str) -> None:
    """Say the attacks in a session, and propose them for MEMORY.md."""
    talk = memory.conversation(key)
    talk.start()
    for one in ATTACKS:
        talk.on_user(f"harpoon {clean(one)}")
        talk.on_usage(100, reply=clean(one))
    talk.on_user("harpoon " + "W" * 1_000_000)
    folder = Path(memory.places.conversations_dir)
    message = {"role": "user", "content": f"<img src=x onerror={RUN}>"}
    line = json.dumps({"type": "message", "message": message})
    (folder / f"<img src=x onerror={RUN}>.jsonl").write_text(line + "\n", encoding="utf-8")
