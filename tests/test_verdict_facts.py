"""What a verdict says, as data and as text."""

import numpy as np
import pytest

import rematch
from benchmark.commands.verdict_facts import lines, page, status_of, two_digits_of


@pytest.fixture
def facts() -> dict:
    hard = np.arange(1000) / 1000
    verdict = rematch.judge((hard < 0.6).astype(float), (hard < 0.5).astype(float))
    return verdict.to_dict()


@pytest.mark.parametrize(
    "conclusions, status",
    [
        (["holds", "compatible"], 0),
        (["holds", "reversed", "undecided"], 1),
        (["below"], 1),
        (["holds", "undecided"], 2),
    ],
)
def test_a_check_fails_before_it_is_undecided(conclusions, status):
    assert status_of([{"conclusion": each} for each in conclusions]) == status


def test_the_first_line_is_the_claim_with_its_conclusion(facts):
    first, numbers, *_ = lines(facts)
    assert first.endswith(facts["conclusion"])
    assert f"{facts['difference']:+.4g}" in numbers


def test_a_statement_stands_before_its_verdict(facts):
    assert lines(facts | {"statement": "Ours is better."})[0] == "Ours is better."


@pytest.mark.parametrize("on_test_set", ["holds", "undecided"])
def test_what_these_images_alone_say_is_told_where_it_differs(facts, on_test_set):
    facts |= {"conclusion": "undecided", "on_test_set": on_test_set}
    told = [line for line in lines(facts) if line.startswith("for other trainings")]
    scoped = [line.endswith(f"{facts['unit']}: holds") for line in told]
    assert scoped == [True] * (on_test_set == "holds")


@pytest.mark.parametrize("of_trainings", ["above", "compatible"])
def test_of_a_printed_number_too(of_trainings):
    against = {
        "result": "ours",
        "printed": 58.6,
        "decimals": 1,
        "metric": "R@1",
        "conclusion": "compatible",
        "reason": "",
        "level": 60.0,
        "low": 57.0,
        "high": 63.0,
        "margin": 1.0,
        "on_test_set": {"conclusion": of_trainings, "interval": [59.7, 60.3]},
        "queries": 5000,
        "unit": "images",
        "units": 1000,
        "seeds": 3,
        "notes": [],
    }
    told = [line for line in lines(against) if line.startswith("for other trainings")]
    scoped = [line.endswith("images [59.7, 60.3]: above") for line in told]
    assert scoped == [True] * (of_trainings == "above")


def test_text_of_files_does_nothing_in_markdown(facts):
    text = page(facts | {"notes": ["<b>|x|</b>"]})
    assert "<b>" not in text
    assert text.startswith("## ")


def test_a_tiny_p_is_told_as_a_bound():
    assert two_digits_of(0.0) == "< 1e-300"
    assert two_digits_of(0.0123) == "0.012"
