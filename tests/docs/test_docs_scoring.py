"""The numbers on the page about scoring are those of the code and of the result files."""

from __future__ import annotations

import json

from docblocks import ROOT

from clawmark.agent.prompt import recall_rule as worth
from clawmark.engine.search import scoring

PAGE = " ".join((ROOT / "docs" / "explanation" / "scoring.md").read_text(encoding="utf-8").split())


def test_the_formula_of_the_confidence_has_the_weights_of_the_code() -> None:
    by_words = f"{scoring.TEXT:g} × text + {scoring.NAME:g} × name"
    by_meaning = f"meaning × vector + {scoring.LINE:g} × line + {scoring.USER:g} × user"
    assert f"confidence = 1 / (1 + exp(−(bias + {by_words} + {by_meaning})))" in PAGE
    assert f"`meaning` is {scoring.INSTANT_MEANING:g} for the static table" in PAGE
    assert f"and {scoring.MODEL_MEANING:g} for a model" in PAGE
    few = f"{scoring.FEW:g} × ln({scoring.SMALLEST_CROWD} / passages)"
    assert (
        f"`bias` is −{-scoring.BIAS:g}. In a vector space of fewer than {scoring.SMALLEST_CROWD} "
        f"passages it is {few}" in PAGE
    )


def test_the_rule_of_recall_has_the_constants_of_the_code() -> None:
    assert (
        f"log-odds = ln(score / (1 − score)) + {worth.ABOUT:g} − (1 − {worth.RARE:g} × rare) × "
        f"ln(passages) − small" in PAGE
    )
    assert f"counts up to {worth.MOST_SCORE:g}" in PAGE
    assert f"At most {worth.MOST_RARE:g} count" in PAGE
    assert f"(a confidence of {worth.BAR:g})" in PAGE


def test_the_table_of_recall_is_what_was_measured() -> None:
    body = json.loads((ROOT / "bench" / "results" / "recall.json").read_text(encoding="utf-8"))
    rows = {row["what"]: row for row in body["rows"] if row["half"] == "held out"}
    for what, words in (
        ("answered", "questions that get an answer"),
        ("chatter", "chatter that recalls something"),
        ("foreign", "questions about another workspace that recall something"),
    ):
        assert (
            f"| {words} | {rows[what]['recalled']:.2f} | {rows[what]['by_score_alone']:.2f} |"
            in PAGE
        )
    recalled, asked = body["counts"]["chatter"]["notes"]
    assert f"{recalled} of the {asked} held-out prompts of chatter recall one" in PAGE
