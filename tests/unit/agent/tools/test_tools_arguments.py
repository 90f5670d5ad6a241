"""What a model passes is read leniently in form and strictly in meaning."""

from __future__ import annotations

import math

import pytest

from clawmark.agent.tools.arguments import (
    LARGEST_WHOLE,
    LONGEST_JSON,
    read_arguments,
    refuse_argument,
    share_argument,
    text_argument,
    whole_argument,
)
from clawmark.model.errors import ToolInputError


def refusal(error: pytest.ExceptionInfo[ToolInputError]) -> str:
    message = error.value.message
    assert "\n" not in message
    assert message.endswith(".")
    return message


# --- the arguments as a whole ---


def test_a_mapping_and_its_json_are_the_same_arguments() -> None:
    assert (
        read_arguments('{"query": "tea"}') == read_arguments({"query": "tea"}) == {"query": "tea"}
    )


def test_no_arguments_are_an_empty_object() -> None:
    assert read_arguments(None) == {}


@pytest.mark.parametrize("given", [[], ["query"], 5, True, 'null"', "[]", "5", "null", b"{}"])
def test_anything_but_an_object_is_refused(given: object) -> None:
    with pytest.raises(ToolInputError) as error:
        read_arguments(given)
    assert refusal(error).startswith("The arguments ")


@pytest.mark.parametrize(
    "text", ['{"query":"te', "{'query':'tea'}", '{"query":"tea"}garbage', "", '{"a":0.3.5}']
)
def test_broken_json_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(ToolInputError) as error:
        read_arguments(text)
    assert "not valid JSON" in refusal(error)
    assert "at character" in refusal(error)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_the_constants_that_are_not_json_are_refused(constant: str) -> None:
    with pytest.raises(ToolInputError) as error:
        read_arguments(f'{{"minScore": {constant}}}')
    assert constant in refusal(error)


def test_a_key_given_twice_is_refused_by_name() -> None:
    with pytest.raises(ToolInputError) as error:
        read_arguments('{"path": "MEMORY.md", "path": "../outside/secret.md"}')
    assert refusal(error) == "path is given twice."
    assert error.value.argument == "path"


def test_a_key_given_twice_inside_a_value_is_refused_too() -> None:
    with pytest.raises(ToolInputError):
        read_arguments('{"query": "tea", "x": {"a": 1, "a": 2}}')


def test_a_depth_bomb_is_refused() -> None:
    with pytest.raises(ToolInputError) as error:
        read_arguments('{"query":' + "[" * 50_000 + "]" * 50_000 + "}")
    assert "too deeply" in refusal(error)


def test_a_number_of_ten_thousand_digits_is_refused() -> None:
    with pytest.raises(ToolInputError) as error:
        read_arguments('{"maxResults": 1' + "0" * 10_000 + "}")
    assert "digits" in refusal(error)


def test_json_beyond_the_stated_length_is_refused() -> None:
    with pytest.raises(ToolInputError) as error:
        read_arguments('{"query": "' + "a" * LONGEST_JSON + '"}')
    assert f"at most {LONGEST_JSON:,}" in refusal(error)


# --- text ---


def test_text_is_trimmed_where_blanks_mean_nothing() -> None:
    assert text_argument({"query": "  tea \n"}, "query", trim=True, longest=10) == "tea"
    assert text_argument({"path": " a.md"}, "path", trim=False, longest=10) == " a.md"


@pytest.mark.parametrize("value", [None, 1, True, [], {}, ["a"], {"q": 1}, "", "  \n"])
def test_a_required_text_that_is_missing_or_no_text_is_named(value: object) -> None:
    with pytest.raises(ToolInputError) as error:
        text_argument({"query": value}, "query", trim=True, longest=10)
    assert refusal(error).startswith("query ")
    assert error.value.argument == "query"


def test_a_name_in_another_case_is_another_name() -> None:
    with pytest.raises(ToolInputError) as error:
        text_argument({"Query": "tea"}, "query", trim=True, longest=10)
    assert refusal(error) == "query is required."


def test_text_beyond_its_limit_is_refused_with_both_numbers() -> None:
    with pytest.raises(ToolInputError) as error:
        text_argument({"query": "a" * 1234}, "query", trim=True, longest=1000)
    assert refusal(error) == "query is 1,234 characters long; at most 1,000 are taken."


# --- whole numbers ---


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (6, 6),
        (6.0, 6),
        (1.9, 1),
        ("6", 6),
        (" 6 ", 6),
        ("6.7", 6),
        ("+6", 6),
        ("1e1", 10),
        (50, 50),
        (51, 50),
    ],
)
def test_whole_numbers_are_read_from_numbers_and_numeric_text(value: object, read: int) -> None:
    assert whole_argument({"maxResults": value}, "maxResults", most=50) == read


@pytest.mark.parametrize("value", [None, "", "  "])
def test_null_and_blank_mean_not_given(value: object) -> None:
    assert whole_argument({"maxResults": value}, "maxResults") is None
    assert share_argument({"minScore": value}, "minScore") is None
    assert whole_argument({}, "maxResults") is None


@pytest.mark.parametrize("value", [10**9, 2**63, 2**64, 10**400, 1e308, "9" * 40])
def test_a_huge_number_becomes_the_most(value: object) -> None:
    assert whole_argument({"maxResults": value}, "maxResults", most=50) == 50
    assert whole_argument({"from": value}, "from") == LARGEST_WHOLE


@pytest.mark.parametrize("value", [0, -1, -(10**9), -(10**400), 0.5, -0.0, "-3", "0"])
def test_a_number_below_one_is_refused(value: object) -> None:
    with pytest.raises(ToolInputError) as error:
        whole_argument({"maxResults": value}, "maxResults", most=50)
    assert refusal(error).startswith("maxResults must be 1 or more, not ")


@pytest.mark.parametrize(
    "value", [True, False, [], {}, "six", "1_0", "0x1", "١٢", "nan", "inf", "1e999", "9" * 81]
)
def test_what_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(ToolInputError) as error:
        whole_argument({"maxResults": value}, "maxResults", most=50)
    assert refusal(error).startswith("maxResults must be a ")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_never_pass(value: float) -> None:
    for read in (whole_argument, share_argument):
        with pytest.raises(ToolInputError) as error:
            read({"n": value}, "n")
        assert refusal(error) == "n must be a finite number."


@pytest.mark.parametrize("value", [0, 0.0, "0", 0.9])
def test_zero_can_stand_for_not_given(value: object) -> None:
    assert whole_argument({"from": value}, "from", zero_is_absent=True) is None


# --- shares ---


@pytest.mark.parametrize(
    ("value", "read"),
    [(0, 0.0), (1, 1.0), (0.35, 0.35), ("0.35", 0.35), (".5", 0.5), (5e-324, 5e-324)],
)
def test_a_share_is_a_number_from_zero_to_one(value: object, read: float) -> None:
    assert share_argument({"minScore": value}, "minScore") == read


def test_minus_zero_is_zero() -> None:
    share = share_argument({"minScore": -0.0}, "minScore")
    assert share is not None
    assert math.copysign(1, share) == 1


@pytest.mark.parametrize("value", [-1, 1.0000001, 2, 1e308, 10**400, "-0.1", "35"])
def test_a_share_out_of_range_is_refused_and_not_moved_into_it(value: object) -> None:
    with pytest.raises(ToolInputError) as error:
        share_argument({"minScore": value}, "minScore")
    assert refusal(error).startswith("minScore must be a number from 0 to 1, not ")


# --- names ---


def test_snake_case_names_are_read_too() -> None:
    assert whole_argument({"max_results": 3}, "maxResults") == 3
    assert share_argument({"min_score": 0.5}, "minScore") == 0.5


def test_the_same_value_under_both_names_is_one_value() -> None:
    assert whole_argument({"max_results": 3, "maxResults": 3}, "maxResults") == 3


def test_two_values_under_both_names_are_refused() -> None:
    with pytest.raises(ToolInputError) as error:
        whole_argument({"max_results": 3, "maxResults": 4}, "maxResults")
    assert refusal(error) == "maxResults and max_results are both given and differ."


@pytest.mark.parametrize("key", ["agentId", "agent_id"])
@pytest.mark.parametrize("value", ["other", "", None, 5])
def test_a_forbidden_argument_is_refused_with_any_value(key: str, value: object) -> None:
    with pytest.raises(ToolInputError) as error:
        refuse_argument({key: value}, "agentId", "only this agent's memory is here")
    assert refusal(error) == f"{key} cannot be given: only this agent's memory is here."
