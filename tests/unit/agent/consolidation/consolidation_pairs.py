"""Pairs of statements that were written before their author had read the rules.

`old` is a line of MEMORY.md. `new` is an entry of the log of 2026-02-18, or for duplicates a second
line of MEMORY.md. The runs take place on 2026-03-02. Do not tune the rules to these pairs: a pair
that is found by a rule made for it says nothing about precision or recall.
"""

from typing import NamedTuple


class Pair(NamedTuple):
    kind: str  # superseded, expired or duplicate: what the pair is, or what it could be taken for
    old: str
    new: str = ""


RELATED = [
    Pair("superseded", "The office is in Utrecht.", "We moved the office to Rotterdam."),
    Pair("superseded", "Standup is at 09:30.", "Standup is at 10:00 from now on."),
    Pair(
        "superseded",
        "Maja's phone plan costs 15 euros a month.",
        "Maja's phone plan now costs 19 euros a month.",
    ),
    Pair("superseded", "Jonas leads the billing team.", "Hanna leads the billing team now."),
    Pair(
        "superseded",
        "The dentist appointment is on Tuesday.",
        "The dentist appointment was moved to Friday.",
    ),
    Pair("superseded", "Das Büro ist in Köln.", "Das Büro ist jetzt in Bonn."),
    Pair("superseded", "The launch is planned for April.", "The launch slipped to May."),
    Pair(
        "superseded",
        "Production runs on Postgres 14.",
        "We upgraded production from Postgres 14 to Postgres 16.",
    ),
    Pair("superseded", "Pia does not eat fish.", "Pia eats fish again."),
    Pair("superseded", "The spare key is with Mrs. Okafor.", "The spare key is with Mr. Lind."),
    Pair(
        "superseded",
        "The gym membership ends on 2026-06-30.",
        "The gym membership ends on 2026-09-30.",
    ),
    Pair(
        "superseded",
        "The wifi network is called Heron.",
        "The wifi network is called Bittern.",
    ),
    Pair("expired", "The guest room is taken until 2026-02-15."),
    Pair("expired", "2026-02-10: tyres changed at Brandt's."),
    Pair("expired", "The trial of the design tool runs until 20 February 2026."),
    Pair("expired", "[x] Send the lease to Oskar."),
    Pair("duplicate", "Backups are encrypted with age.", "All backups are encrypted with age."),
    Pair(
        "duplicate",
        "Lena is allergic to penicillin.",
        "Lena is allergic to penicillin and to cats.",
    ),
    Pair(
        "duplicate",
        "The invoices go to billing@example.org.",
        "Invoices go to billing@example.org.",
    ),
    Pair("duplicate", "Ravi prefers trains to planes.", "Ravi: prefers trains to planes."),
]

NEAR_MISSES = [
    Pair("superseded", "Standup is at 09:30.", "The retro is at 10:00 from now on."),
    Pair("superseded", "The office is in Utrecht.", "We visited the office in Rotterdam."),
    Pair(
        "superseded",
        "Maja's phone plan costs 15 euros a month.",
        "Jan's phone plan costs 19 euros a month.",
    ),
    Pair("superseded", "Jonas leads the billing team.", "Hanna leads the search team now."),
    Pair(
        "superseded",
        "The dentist appointment is on Tuesday.",
        "The vet appointment was moved to Friday.",
    ),
    Pair(
        "superseded",
        "The launch is planned for April.",
        "The launch of the second site is planned for September.",
    ),
    Pair("superseded", "Production runs on Postgres 14.", "Staging runs on Postgres 16 now."),
    Pair("superseded", "Pia does not eat fish.", "Pia eats meat again."),
    Pair(
        "superseded",
        "The spare key is with Mrs. Okafor.",
        "Mr. Lind was here because of the spare key.",
    ),
    Pair(
        "superseded",
        "The gym membership ends on 2026-06-30.",
        "Should the gym membership end on 2026-05-31?",
    ),
    Pair(
        "superseded",
        "The train to Porto leaves at 08:12.",
        "The train to Lisbon leaves at 09:40.",
    ),
    Pair("superseded", "Nadia wakes up at 06:00.", "Nadia woke up at 07:15 today."),
    Pair(
        "superseded",
        "The server is in Falkenstein.",
        "If the price goes up, the server moves to Helsinki.",
    ),
    Pair("superseded", "The team has 5 people.", "The team of Carlos has 7 people."),
    Pair("superseded", "Omar lives in Lyon.", "Omar's brother lives in Lille now."),
    Pair("expired", "The shop was founded on 2019-05-01 and sells maps."),
    Pair("expired", "The guest room is taken until 2026-05-15."),
    Pair("expired", "Nobody works until 09:00 on Mondays."),
    Pair("duplicate", "Lena is allergic to penicillin.", "Lena is not allergic to penicillin."),
    Pair("duplicate", "Restores need two people.", "Restores need three people."),
]
