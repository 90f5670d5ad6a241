"""Read simple claims from statements: a subject, what is claimed about it, and the value.

    The launch is in February.            launch · when · February
    Billing moved from MySQL to SQLite.   billing · which · SQLite, before MySQL
    Biscuit: 11.4 kilos, vaccinated.      biscuit · amount of kilos · 11.4

Only a few plain forms are read, in English and German. A sentence with a negation, a condition, a
question or a guess claims nothing, and neither does one about the past."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.when import When, find_times
from clawmark.agent.consolidation.wording import FILLERS, NEGATIONS, stem, tokens_of

MARK = re.compile(r" ?\((?:until|bis) \d{4}-\d\d-\d\d: (?P<old>[^()]{1,200})\)")
"""What shows that a value was replaced: `March (until 2026-03-02: February)`."""
MOST_SUBJECT_WORDS = 6
_QUOTES = ('"', "'", "“", "„", "»", "«", "`", "*")

_CHANGED = (
    r"moved|switched|changed|migrated|rescheduled|postponed|shifted|relocated|went up|rose|raised"
    r"|dropped|went down|lowered|brought forward|pushed back"
)
_PLACED = ("moved", "relocated", "gezogen", "umgezogen")
_CHANGE = re.compile(
    r"\A(?P<subject>[^,;:.!?()]{2,80}?) "
    r"(?:(?:has|have|is|was|were|are|got|had)(?: now| been)? )?"
    rf"(?:now )?(?P<verb>{_CHANGED})(?: back)?(?: over)?(?: from (?P<before>[^,;:.!?()]{{1,50}}?))?"
    r" (?:to|until) (?P<value>.{1,120})\Z",
    re.IGNORECASE,
)
_ACTIVE = re.compile(
    r"\A(?:[A-ZÀ-Þ][\w'’-]+|I) (?:has |have )?(?P<verb>moved|switched|changed|migrated|rescheduled"
    r"|postponed|shifted|raised|lowered) (?P<subject>(?:the|our|a|my) [^,;:.!?()]{2,60}?)"
    r"(?: from (?P<before>[^,;:.!?()]{1,50}?))? to (?P<value>.{1,120})\Z"
)
"""Who changed what: "Tomasz moved the backup to 04:30"."""
_CHANGE_DE = re.compile(
    r"\A(?P<subject>[^,;:.!?()]{2,80}?) (?:wurde|wird|ist|sind|werden|wurden)(?: jetzt| nun)?"
    r"(?: vo[nm] (?P<before>[^,;:.!?()]{1,50}?))? (?:auf|nach|zu)(?: den| die| das)? "
    r"(?P<value>[^,;:!?()]{1,60}?)"
    r" (?P<verb>verschoben|verlegt|geändert|gewechselt|umgestellt|umgestiegen|gezogen|umgezogen"
    r"|gestiegen|gesunken|erhöht|gesenkt)\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(
    r"\A(?P<subject>(?!(?:[Tt]here|[Hh]ere|[Dd]as|[Ee]s)\b)[^,;:.!?()]{2,80}?)(?P<now> now)? "
    r"(?P<verb>will be|is|are|costs?|weighs?|takes?|lives?|works?|starts?|begins?|ends?|opens?|"
    r"closes?|runs?|uses?|has|have|happens?|ist|sind|kostet|kosten|beträgt|wiegt|dauert|wohnt|lebt|"
    r"arbeitet|beginnt|startet|endet|läuft|nutzt|nutzen|benutzt|verwendet|hat|haben)"
    r"(?P<now2> (?:now|jetzt|nun|from now on|ab jetzt|ab sofort))?"
    r"(?: (?:planned|scheduled|due|set|based|hosted|geplant|fällig|angesetzt|about|around|etwa|"
    r"rund))? (?P<value>.{1,120})\Z"
)
_TIMELESS_VERBS = """
    live lives work works has have use uses cost costs
    wohnt lebt arbeitet hat haben nutzt nutzen benutzt verwendet kostet kosten
"""
_WITHOUT_TIME = frozenset(_TIMELESS_VERBS.split())
"""Verbs after which a time says when something is done, not when the subject takes place."""
_PLURAL_VERBS = frozenset(
    ("are", "start", "begin", "end", "open", "close", "run", "take", "happen", "sind")
)
_MORE_TIMES = re.compile(r"\s*(?:and|or|to|und|oder|bis|till|until|[,/&–-])\s*", re.IGNORECASE)
_KEYED = re.compile(r"\A(?P<subject>[^,;:.!?()]{2,60}): (?P<value>.{1,200})\Z")
_PLAIN = re.compile(
    r"\A(?P<subject>[^,;:.!?()]{2,60}?) (?P<value>(?:in|on|at|im|am|um) [^,;:!?()]{1,40})\Z",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(
    r"\A(?:(?:in|on|at|for|by|to|from|im|am|um|auf|zum|ab|early|mid|late|the|den|dem) ){0,2}",
    re.IGNORECASE,
)
_LED = re.compile(
    r"\A(?:(?:now|update|correction|from now on|ab jetzt|ab sofort|korrektur)[,:]? )",
    re.IGNORECASE,
)
_FROM_NOW = re.compile(
    r"\b(?:from now on|as of now|ab jetzt|ab sofort|von nun an)\b", re.IGNORECASE
)
_PRONOUNS = re.compile(r"\A(?:we|i|he|she|they|you|it|wir|ich|er|sie|du|es|the first|next)\b", re.I)
_COUNTS = {
    word: number
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split(), 1)
} | {"eine": 1, "einen": 1, "einem": 1}
_AMOUNT = re.compile(
    r"(?P<number>[0-9]+(?:[.,][0-9]+)*|\b(?:" + "|".join(_COUNTS) + r")\b) ?"
    r"(?P<unit>€|\$|£|%|[^\W\d_]{1,30})"
    r"(?P<rate>(?: (?:a|an|per|pro|je|die|im) [^\W\d_]{2,20}){0,2})",
    re.IGNORECASE,
)
_RATE = "a an per pro je die im"
_OTHER_WORDS = "st nd rd th above below more less fewer other others"
_RATE_WORDS = frozenset(_RATE.split())
_NOT_UNITS = FILLERS | frozenset(_OTHER_WORDS.split())
_UNIT_WORDS = """
    euro dollar pound kilo kg gram km metre meter mile litre liter percent degree minute hour day
    week month year person people
    kronen kroner franken prozent grad minuten stunde stunden tag tage woche wochen monat monate
    jahr jahre personen leute
"""
_KNOWN_UNITS = frozenset(_UNIT_WORDS.split())
_UNITS = {"€": "euro", "eur": "euro", "$": "dollar", "usd": "dollar", "£": "pound", "%": "percent"}
_NAME = re.compile(r"`[^`\n]{1,40}`|[A-ZÀ-Þ][\w&.+-]*\w(?: [A-ZÀ-Þ0-9][\w&.+-]*\w)*|[A-Z]\w*")
_GUESS = re.compile(
    r"\?|\b(?:maybe|perhaps|might|possibly|probably|should|could|would|(?-i:may)|if|unless|whether"
    r"|suppose|wants? to|hopes? to|considering|thinking|vielleicht|eventuell|könnte|sollte|würde"
    r"|this (?:week|time|month|once)|next week|today|tonight|tomorrow|temporarily|for now|exception"
    r"|exceptionally|diese woche|dieses mal|nächste woche|heute|morgen|ausnahmsweise|vorübergehend"
    r"|wenn|falls|ob|wohl|vermutlich|einer|idea|idee|try|usually|sometimes|normally"
    r"|meistens|manchmal)\b",
    re.IGNORECASE,
)
_SPEECH = re.compile(
    r"\A(?:user|assistant|human|system): |\A[^,;:.!?()]{2,60}: .*(?:!|\b(?:I|I['’]\w+|you|your)\b)"
)
"""What someone said in a conversation, after the name of the speaker."""
_ATTRIBUTE_NOUNS = """
    address birthday budget capital colour color contact deadline dentist doctor domain editor email
    extension favourite favorite host landlord language licence license location manager name number
    owner phone port price provider registrar room shell size team time timezone title vendor venue
    version vet
    adresse geburtstag farbe frist zahnarzt arzt ärztin sprache ort leiter nummer besitzer preis
    anbieter raum größe titel tierarzt telefonnummer vermieter
"""
_MEASURES = """
    amount author cost date distance duration height length pages rating weight width
    autor dauer datum gewicht höhe kosten länge
"""
_DURATION_WORDS = "minute hour day week month year minuten stunden tage wochen monate jahre"
_ATTRIBUTES = frozenset(map(stem, _ATTRIBUTE_NOUNS.split()))
_FIELDS = _ATTRIBUTES | frozenset(map(stem, _MEASURES.split()))
_DURATIONS = frozenset(f"amount {stem(unit)}" for unit in _DURATION_WORDS.split())
_FAVOURITE = re.compile(r"\b(?:favou?rite|preferred|lieblings)", re.IGNORECASE)
_VERBS = {
    **dict.fromkeys(("start", "begin", "beginnt", "startet"), "start"),
    **dict.fromkeys(("end", "endet"), "end"),
    **dict.fromkeys(("live", "wohnt", "lebt"), "place"),
    **dict.fromkeys(("work", "arbeitet"), "work"),
    **dict.fromkeys(("use", "run", "nutzt", "nutzen", "benutzt", "verwendet"), "which"),
}


class Claim(NamedTuple):
    """What a statement claims about a subject."""

    entry: Entry
    sentence: str
    subject: frozenset[str]
    """The stems of its words; empty if the statement does not name it ("we", "it")."""
    attribute: str
    """`when`, `amount kilo`, `place`, `which`, `text` …"""
    value: str
    """In a form that can be compared."""
    phrase: str
    """The value as it stands in the sentence."""
    is_change: bool = False
    """Whether the statement says that the value is new."""
    before: str = ""
    """The value that it replaces, as it stands in the sentence, if the statement names it."""
    last_day: str = ""
    """The last day of a value that is a time, if it is known."""
    is_field: bool = False
    """Whether it is a line like "Price: 900 euros", of which each thing in a list has one."""
    is_many: bool = False
    """Whether it is about several things, which can have several times: "Events are in July"."""


def find_claims(entry: Entry) -> tuple[Claim, ...]:
    """Return what the sentences of an entry claim."""
    if entry.box:
        return ()
    claims, subject = list[Claim](), ""
    for sentence in entry.sentences:
        plain = MARK.sub("", sentence).rstrip(".! ")
        if (
            plain.startswith(_QUOTES)
            or _SPEECH.search(plain)
            or _GUESS.search(plain)
            or any(token in NEGATIONS for token in tokens_of(plain))
        ):
            continue
        found = list(_claims(entry, sentence, _LED.sub("", plain), subject or entry.heading))
        claims += found
        subject = subject or _subject_text(plain)
    return tuple(dict.fromkeys(claims))


def old_values(entry: Entry) -> set[str]:
    """Return the values that an entry says it no longer has, in lower case."""
    return {found["old"].casefold() for found in MARK.finditer(entry.text)}


def is_same_value(one: Claim, other: Claim) -> bool:
    """Whether two values of the same attribute are the same, as far as both are known."""
    if one.attribute != "when":
        return one.value == other.value
    first, second = _date_parts(one.value), _date_parts(other.value)
    return all(left == right for left, right in zip(first, second, strict=True) if left and right)


def is_comparable(one: Claim, other: Claim) -> bool:
    """Whether two claims are about the same attribute."""
    if one.attribute == other.attribute:
        return one.attribute != "when" or time_kind(one.value) == time_kind(other.value)
    # "29 euros a month per school" and "35 euros a month"
    short, long = sorted((one.attribute, other.attribute), key=len)
    return short.startswith("amount ") and short.count(" ") > 1 and long.startswith(f"{short} ")


def full_names(entries: Iterable[Entry]) -> set[frozenset[str]]:
    """Return the names of two or three words that entries of MEMORY.md start with."""
    found = set[frozenset[str]]()
    for entry in entries:
        name = re.match(r"[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){1,2}(?=[:,])", entry.plain)
        if name:
            found.add(frozenset(map(stem, tokens_of(name[0]))))
    return found


# --- Forms of sentences ---


def _claims(entry: Entry, sentence: str, plain: str, default: str) -> Iterator[Claim]:
    change = _ACTIVE.match(plain) or _CHANGE.match(plain) or _CHANGE_DE.match(plain)
    if change:
        claim = _typed(entry, sentence, change, is_change=True)
        if claim is not None:
            is_name = claim.attribute == "name"
            yield claim._replace(attribute="which") if is_name else claim
            if is_name and change["verb"].lower() in _PLACED:
                yield claim._replace(attribute="place")
        return
    present = _PRESENT.match(plain) or _PRESENT.match(f"{default} {plain[:1].lower()}{plain[1:]}")
    if present:
        yield from _present(entry, sentence, present)
        return
    keyed = _KEYED.match(plain)
    if keyed:
        for claim in _keyed(entry, sentence, keyed):
            yield claim._replace(is_field=True)
        return
    noun = _PLAIN.match(plain)
    if noun and len(tokens_of(plain)) <= 8 and not _PRONOUNS.match(plain):
        claim = _typed(entry, sentence, noun)
        if claim is not None and claim.attribute == "when":
            yield claim


def _present(entry: Entry, sentence: str, found: re.Match[str]) -> Iterator[Claim]:
    is_change = bool(found["now"] or found["now2"]) or bool(
        _LED.match(sentence) or _FROM_NOW.search(sentence)
    )
    claim = _typed(entry, sentence, found, is_change=is_change)
    verb = found["verb"].lower()
    kind = _VERBS.get(verb) or _VERBS.get(verb.rstrip("s"), "")
    if claim is None:
        if verb in ("is", "are", "ist", "sind", "will be"):
            yield from _attribute(entry, sentence, found, is_change=is_change)
        return
    if claim.attribute == "name":
        if not kind and verb not in ("is", "ist", "are", "sind"):
            return
        text_claims = list(_attribute(entry, sentence, found, is_change=is_change))
        if text_claims:
            yield from text_claims
        elif kind in ("place", "work", "which"):
            yield claim._replace(attribute=kind)
        return
    if claim.attribute == "when" and verb in _WITHOUT_TIME:
        return
    if claim.attribute == "when" and verb in _PLURAL_VERBS:
        claim = claim._replace(is_many=True)
    if claim.attribute == "when" and kind in ("start", "end"):
        claim = claim._replace(subject=claim.subject | {kind})
    yield claim


def _keyed(entry: Entry, sentence: str, found: re.Match[str]) -> Iterator[Claim]:
    claim = _typed(entry, sentence, found)
    if not entry.is_long_term and _is_bare(found["subject"], claim):
        return
    if claim is not None and claim.attribute != "name":
        yield claim
    yield from _attribute(entry, sentence, found)
    subject = _subject(found["subject"])
    for part in found["value"].split(", ")[1:]:
        amounts = list(_AMOUNT.finditer(part))
        # "on Plover one day a week": the amount ends a short part of the list.
        is_value = len(amounts) == 1 and amounts[0].end() == len(part)
        is_value = is_value and _is_unit(amounts[0]["unit"])
        if subject and is_value and len(part.split()) <= MOST_SUBJECT_WORDS:
            yield Claim(
                entry=entry,
                sentence=sentence,
                subject=subject,
                attribute=f"amount {_unit(amounts[0])}",
                value=_number(amounts[0]["number"]),
                phrase=_amount_phrase(amounts[0]),
            )


def _is_bare(subject: str, claim: Claim | None) -> bool:
    """Whether a log does not say what a line is about: "Price: 900 euros", "Anna: 5 years"."""
    words = [word for word in tokens_of(subject) if word not in FILLERS]
    if all(stem(word) in _FIELDS for word in words):
        return True
    return claim is not None and claim.attribute in _DURATIONS


def _attribute(
    entry: Entry, sentence: str, found: re.Match[str], *, is_change: bool = False
) -> Iterator[Claim]:
    """Yield a claim whose value is a few words: "The venue is Lysverket", "Editor: Helix"."""
    subject = _subject(found["subject"])
    words = tokens_of(found["subject"])
    phrase = re.split(
        r",(?!\d)|[;(–—]| - | and | und | with | mit | because | weil ", found["value"]
    )[0]
    is_short = 0 < len(tokens_of(phrase)) <= 4
    if "verb" in found.re.groupindex and not _FAVOURITE.search(found["subject"]):
        # A judgement is not a value: "the colours are so bright".
        is_short = is_short and (phrase[:1].isupper() or phrase[:1].isdigit() or phrase[:1] == "`")
    head = words[: words.index("of")] if "of" in words else words
    if subject and head and stem(head[-1]) in _ATTRIBUTES and is_short and len(subject) > 0:
        yield Claim(
            entry=entry,
            sentence=sentence,
            subject=subject,
            attribute="text",
            value=" ".join(tokens_of(phrase)),
            phrase=phrase.strip(),
            is_change=is_change,
        )


def _typed(
    entry: Entry, sentence: str, found: re.Match[str], *, is_change: bool = False
) -> Claim | None:
    """Return the claim of a sentence whose value is a time, an amount or a name."""
    groups = found.groupdict()
    subject, given = _subject(groups["subject"]), groups["value"]
    rest = given[_PREPOSITION.match(given).end() :]  # type: ignore[union-attr]
    before = groups.get("before") or ""
    if subject is None or (not subject and not before):
        return None
    claim = Claim(
        entry=entry,
        sentence=sentence,
        subject=subject,
        attribute="",
        value="",
        phrase="",
        is_change=is_change,
        before=before,
    )
    # The name of a month counts only after a preposition.
    times = find_times(f"in {rest}", "" if entry.is_long_term else entry.day)
    if times and times[0].start == len("in "):
        return _at_time(claim, rest, times)
    amount = _AMOUNT.match(rest)
    if amount and _is_unit(amount["unit"]):
        return claim._replace(
            attribute=f"amount {_unit(amount)}",
            value=_number(amount["number"]),
            phrase=_amount_phrase(amount),
        )
    name = _NAME.match(rest)
    if name and not _continues(rest, name.end()):
        return claim._replace(attribute="name", value=name[0].strip("`").casefold(), phrase=name[0])
    return None


def _at_time(claim: Claim, rest: str, times: list[When]) -> Claim | None:
    """Return the claim with its first time; None if it has a second one, as a range has."""
    first, end = times[0], times[0].end - len("in ")
    more = _MORE_TIMES.match(rest, end)
    following = find_times(f"in {rest[more.end() :]}", "") if more else []
    if following and following[0].start == len("in "):
        return None
    return claim._replace(
        attribute="when", value=first.value, phrase=rest[:end].strip(), last_day=first.last
    )


def _continues(text: str, at: int) -> bool:
    """Whether a name goes on after it was cut: "Northgate's plan", "London-based"."""
    return text[at : at + 1] in ("'", "’", "-", "/")


# --- Subjects and values ---


def _subject(text: str) -> frozenset[str] | None:
    """Return the stems of a subject; None if it is too long to be one."""
    words = [word for word in tokens_of(text) if word not in FILLERS]
    if len(words) > MOST_SUBJECT_WORDS:
        return None
    return frozenset(map(stem, words))


def _subject_text(plain: str) -> str:
    """Return the subject of a first sentence, for a second one without: "Ines Carvalho, 38, …"."""
    found = re.match(r"[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){0,2}(?=[:,]| \w)", plain)
    return found[0] if found else ""


def _unit(amount: re.Match[str]) -> str:
    unit = amount["unit"].lower()
    rate = [stem(word) for word in tokens_of(amount["rate"] or "") if word not in _RATE_WORDS]
    return " ".join([_UNITS.get(unit, stem(unit)), *rate])


def _is_unit(word: str) -> bool:
    """Whether a word can be counted; an adjective before the noun cannot ("two small servers")."""
    word = word.lower()
    if word in _UNITS or word in _KNOWN_UNITS:
        return True
    return word not in _NOT_UNITS and len(word) > 3 and word.endswith("s")


def _amount_phrase(amount: re.Match[str]) -> str:
    return amount[0][: amount.end("unit") - amount.start()]


def _number(text: str) -> str:
    if text.lower() in _COUNTS:
        return str(_COUNTS[text.lower()])
    if re.fullmatch(r"[0-9]{1,3}(?:[.,][0-9]{3})+", text):
        return re.sub(r"[.,]", "", text)
    return text.replace(",", ".")


def time_kind(value: str) -> str:
    """Return whether a time is a weekday, a time of day or a date."""
    if value[:1].isalpha():
        return "weekday"
    return "time" if ":" in value else "date"


def _date_parts(value: str) -> tuple[str, str, str]:
    """Return year, month and day, each empty if it is not known; other times are compared whole."""
    if time_kind(value) != "date":
        return value, "", ""
    parts = value.split("-")
    if len(parts[0]) != 4:
        parts.insert(0, "")
    return (parts[0], parts[1], parts[2]) if len(parts) > 2 else (parts[0], parts[1], "")
