"""Flag text that reads like an instruction to a model.

Recognised are phrases in nine languages, tokens of chat templates, lines with the role of the
system, tool calls, URLs that exfiltrate data, and invisible characters.

Security does not rely on the flag. Paraphrases, other languages and encoded payloads are not
recognised, and a harmless note about prompt injection is flagged. Recalled text is not obeyed
because it stands in a fenced block. Every gap in a pattern is bounded, so the time is linear."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from clawmark.text.untrusted.invisible_characters import has_hidden, without_hidden

FLAG = "instruction-like"

_GAP = r"[^\n]{0,60}?"
_WORD = r"\w{0,20}"
_NEAR = r"[^\n]{0,16}?"

# The beginnings of a phrase, separated by semicolons, and the pattern of the rest. Few texts have
# one of the beginnings, and searching for plain words is much faster than matching patterns.
_PHRASES = (
    # English
    (
        "ignore;disregard;forget;override;bypass",
        rf"\b{_GAP}\b(?:instructions?|prompts?|rules|guidelines|policy)\b",
    ),
    (
        "do not ;don't ;never ;stop ",
        rf"(?:follow|obey|listen)\b{_GAP}\b(?:system|developer|operator|user|instructions?)\b",
    ),
    ("do not ;don't ;never ", rf"(?:tell|inform|mention|warn|alert|show)\b{_NEAR}\buser\b"),
    ("you are now;system prompt;developer mode;developer message;jailbreak;do anything now", r"\b"),
    ("from now on", r",? (?:you|always|never|the assistant|on)\b"),
    ("pretend ", r"(?:to be|that you are|you are) (?:a|an|the|my|another)\b"),
    (
        "new ;updated ;real ;actual ",
        r"(?:task|instructions?|orders|rules|prompt)\b *(?:from|:|are|follow)",
    ),
    (
        "reveal;print;repeat;output;leak;send;post;upload;forward;exfiltrate;email",
        rf"\b{_GAP}\b(?:secrets?|passwords?|credentials|api keys?|memory\.md|conversation)\b",
    ),
    (
        "run;execute;call;invoke;use",
        rf"\b{_GAP}\b(?:memory_(?:search|get|append)|exec|this tool|this command)\b",
    ),
    ("highest ;top ;absolute ", r"priority\b"),
    (
        "survives compaction;always approve;always comply;always obey;without "
        "confirmation;without approval",
        r"\b",
    ),
    ("copy this;write this;append this;repeat this;paste this", rf"\b{_GAP}\b(?:every|all|each)\b"),
    ("decode ;decrypt ;translate ", r"(?:this |it )?and (?:follow|execute|run|obey|do)\b"),
    (
        "when the user;whenever the user",
        rf"\b{_GAP}\b(?:says?|asks?|types?)\b{_GAP}\b(?:run|send|call|post|reply|say)\b",
    ),
    ("end of ", r"(?:the )?(?:memory|memories|context|prompt|notes|instructions|system)\b"),
    (
        "instruction;message;note;notice",
        r"s? (?:for|to) (?:the |any |all )?(?:ai|assistant|agent|model|llm)s?\b",
    ),
    (
        "assistant;agent;model",
        r"s? (?:must|shall|should|will) (?:now |always |never )?(?:ignore|send|obey|follow|run)\b",
    ),
    # German
    (
        "ignorier;vergiss;missachte;überschreib;umgeh",
        rf"{_WORD}\b{_GAP}\b(?:anweisung|regel|vorgabe|instruktion|befehl)",
    ),
    ("ab jetzt ;ab sofort ", r"(?:bist|wirst|sollst|musst|antwortest)\b"),
    ("du bist ", r"(?:jetzt|nun|ab)\b"),
    (
        "gib;sende;schick;verrat;zeig",
        rf"{_WORD}\b{_GAP}\b(?:passw|geheimn|zugangsdaten|systemprompt|schlüssel)",
    ),
    # French
    ("ignor;oubli;néglig", rf"{_WORD}\b{_GAP}\b(?:instructions|consignes?|règles|directives)\b"),
    ("désormais;à partir de maintenant", r",? (?:tu|vous)\b"),
    (
        "envoie;envoyez;révèle;révélez;affiche",
        rf"{_WORD}\b{_GAP}\b(?:mots? de passe|secrets?|identifiants|clés?)\b",
    ),
    # Spanish
    ("ignor;olvid;descart", rf"{_WORD}\b{_GAP}\b(?:instrucciones|reglas|órdenes|indicaciones)\b"),
    ("a partir de ahora;desde ahora;de ahora en adelante", r",? (?:eres|serás|debes|vas|tú)\b"),
    (
        "envía;envíe;revela;revele;muestra;manda",
        rf"\b{_GAP}\b(?:contraseñas?|secretos?|claves?|credenciales)\b",
    ),
    # Portuguese
    (
        "ignor;esqueç;esquec;desconsider",
        rf"{_WORD}\b{_GAP}\b(?:instruções|regras|ordens|diretrizes)\b",
    ),
    ("a partir de agora;de agora em diante", r",? (?:você|tu|deve)\b"),
    ("envie;envia;revele;revela;mostre", rf"\b{_GAP}\b(?:senhas?|segredos?|credenciais|chaves?)\b"),
    # Italian
    ("ignora;dimentica;trascura", rf"{_WORD}\b{_GAP}\b(?:istruzioni|regole|ordini|direttive)\b"),
    ("d'ora in poi;da ora in poi;da adesso in poi", r"\b"),
    # Russian
    (
        "игнорир;забудь;отмени;не обращай внимания",
        rf"{_WORD}{_GAP}(?:инструкци|указани|правил|команд)",
    ),
    ("с этого момента;отныне;теперь ты ", r""),
    ("отправь;раскрой;покажи;выдай;сообщи", rf"{_WORD}{_GAP}(?:парол|секрет|ключ)"),
    # Chinese
    ("忽略;无视;無視;忘记;忘記;不要遵守;绕过", rf"{_NEAR}(?:指令|指示|规则|規則|提示|要求|命令)"),
    ("从现在开始;从现在起;從現在起;從現在開始;你现在是;你現在是", r""),
    ("发送;發送;透露;泄露;输出;輸出;告诉我", rf"{_NEAR}(?:密码|密碼|机密|機密|密钥|系统提示)"),
    # Japanese
    ("指示;命令;ルール;プロンプト", rf"{_NEAR}(?:無視|忘れ)"),
    ("今から;これから;これより", r"、?(?:あなた|君|お前)は"),
    (
        "パスワード;秘密;機密;システムプロンプト",
        rf"{_NEAR}(?:送信|送って|教えて|表示し|出力し|公開し)",
    ),
    # Chat templates, roles, tags, calls. `User:` is missing, because session notes have such lines.
    ("<|", r"[a-z_]{2,30}\|>"),
    ("[inst];[/inst];<<sys>>;<</sys>>;<start_of_turn>;<end_of_turn>", r""),
    (
        "\nsystem;\ndeveloper;\nhuman;\n**system;\n# system;\n## system;\n### system;\n### "
        "instruction",
        r"[*\w]{0,12}[ \t]*:",
    ),
    (
        "<",
        r"/?(?:system|assistant|developer|tool_use|tool_call|tool_result|function_calls?|invoke"
        r"|instructions?|relevant[-_]memories|memory[-_]context|memory|context"
        r"|system[-_]reminder)\b[^<>\n]{0,100}>",
    ),
    ('"tool";"tool_name";"function";"function_call"', r'[ \t]*:[ \t]*["{]'),
    ("](http", r"s?://[^)\s?]{1,200}\?[^)\s]{0,200}="),
    ("\nno_reply;\nheartbeat_ok", r"\b"),
    ("source:", r"[ \t]*(?:system|developer|operator|policy)\b"),
    (
        ";".join(map(chr, range(0xFE00, 0xFE10))),
        "[\ufe00-\ufe0f]{2,}",
    ),  # a sequence of variation selectors hides text
)
_BEGINNINGS = [tuple(beginnings.split(";")) for beginnings, _ in _PHRASES]
_SPACED = re.compile(r"\b(\w) (?=\w\b)")


def flags_of(text: str) -> tuple[str, ...]:
    """Return `("instruction-like",)` for a text that reads like one, else an empty tuple."""
    return (FLAG,) if has_hidden(text) or _is_instruction_like(text) else ()


def _is_instruction_like(text: str) -> bool:
    """Whether a phrase occurs, also in full-width letters or s p a c e d words."""
    plain = "\n" + unicodedata.normalize("NFKC", without_hidden(text)).lower()
    joined, times = _SPACED.subn(r"\1", plain)
    return _has_phrase(plain) or (times > 8 and _has_phrase(joined))


def _has_phrase(text: str) -> bool:
    return any(
        any(beginning in text for beginning in beginnings) and _pattern(number).search(text)
        for number, beginnings in enumerate(_BEGINNINGS)
    )


@cache
def _pattern(number: int) -> re.Pattern[str]:
    """Compile a pattern when one of its beginnings first occurs; most never do."""
    return re.compile(f"(?:{'|'.join(map(re.escape, _BEGINNINGS[number]))}){_PHRASES[number][1]}")
