"""What set-ups amount to: cases by hand, and how often made-up experiments are graded
wrongly."""

from dataclasses import replace

import numpy as np
import pytest
from made_boards import compared, judged

from benchmark.boards.grades import (
    FAILING,
    HOLDING,
    MARKS,
    Finding,
    Grade,
    Graded,
    graded,
)
from benchmark.papers.printed_tables import Claim
from benchmark.stats.claim_kinds import KINDS, Conclusion, Side
from benchmark.stats.significance import Doubt, SeedPart

PRINTED, MARGIN = 12.0, 6.0


def claim(*kinds: str, **facts: object) -> Claim:
    presets = ["scan_t2i_avg", "scan_i2t_avg"]
    parts = [{"presets": presets, "metric": "rsum", "kind": kind} for kind in kinds]
    known = {"id": "made", "statement": "S.", "where": "W", "parts": parts}
    return Claim(**(known | facts))


def on_set_up(
    *parts: dict,
    kind: str = "ordered",
    images: str = "x",
    noise: np.ndarray | None = None,
) -> Finding:
    """What a season found of a claim with two parts of a kind; those that are given have
    an error of 1 each, and a margin of 6."""
    entries, verdicts = [], []
    for index, facts in enumerate(parts):
        error = facts.get("error", 1.0)
        doubt = Doubt(images=error**2, interaction=0.0, image_count=10**6, seeds=())
        given = {key: facts[key] for key in facts.keys() - {"error", "noise"}}
        low = facts["difference"] - 1.96 * error
        ends = {"low": low, "high": low + 3.92 * error}
        known = {"doubt": doubt, "part": index, "margin": MARGIN, "printed": PRINTED}
        entries.append(compared(**(known | ends | given)))
        known = {"images": images, "noise": facts.get("noise", noise)}
        verdicts.append(entries[-1].verdict(KINDS[kind], "the reason", **known))
    return Finding(
        claim=claim(kind, kind),
        entry=judged("undecided").model_copy(update={"parts": entries}),
        verdicts=tuple(verdicts),
        place=images,
        is_drawn=False,
        level=0.0,
    )


def grade(*differences: float, kind: str = "ordered", **facts: object) -> Graded:
    """Of a claim of one part in set-ups on other images."""
    findings = [
        on_set_up({"difference": difference} | facts, kind=kind, images=str(number))
        for number, difference in enumerate(differences)
    ]
    (of_claim,) = graded([findings])
    return of_claim


@pytest.mark.parametrize(
    ("differences", "expected", "agreeing"),
    [
        ([7.0], Grade.SEEN_ONCE, 1),
        ([7.0, 6.5], Grade.CONFIRMED, 2),
        ([7.5, 3.0], Grade.DEPENDS, 0),  # the second lies within the margin
        ([7.5, 7.0, 3.0], Grade.DEPENDS, 0),
        ([12.0, 7.0], Grade.CONFIRMED, 2),  # unlike in size alone
        ([7.0, -7.0], Grade.DEPENDS, 0),
        ([0.5], Grade.NO_EFFECT, 1),
        ([0.5, -1.0], Grade.NO_EFFECT, 2),
        ([-9.0], Grade.FAILS, 1),
        ([-9.0, -8.0], Grade.FAILS, 2),
        ([-5.0, -4.6], Grade.FAILS, 2),
    ],
)
def test_a_grade_follows_from_the_pooled_verdict_and_from_each_set_up(
    differences, expected, agreeing
):
    of_claim = grade(*differences)
    assert (of_claim.grade, of_claim.agreeing) == (expected, agreeing)
    assert of_claim.is_confirmed == (agreeing >= 2)
    (part,) = of_claim.parts
    assert part.verdict.difference == pytest.approx(np.mean(differences))
    assert len(part.set_ups) == len(differences)


def test_a_finding_tells_why_it_decides_for_itself_what_its_season_leaves_open():
    finding = on_set_up({"difference": 7.0})
    for text in ("above zero", "undecided", finding.entry.reason):
        assert text in finding.reason
    undecided = on_set_up({"difference": 1.0, "error": 4.0})
    assert undecided.reason == undecided.entry.reason
    assert replace(finding, is_drawn=True).reason == finding.entry.reason


def test_set_ups_that_are_each_undecided_may_together_be_seen_once():
    of_claim = grade(4.0, 4.0, error=2.5)
    assert of_claim.parts[0].alone == [Conclusion.UNDECIDED] * 2
    assert (of_claim.grade, of_claim.agreeing) == (Grade.SEEN_ONCE, 0)
    assert of_claim.is_smaller


def test_a_set_up_that_contradicts_by_no_more_than_chance_leaves_it_open():
    """One holds alone, the other lies within the margin, and both together hold."""
    of_claim = grade(7.5, 3.0, error=1.8)
    assert (of_claim.agreeing, of_claim.contradicting) == (1, 0)
    assert of_claim.grade == Grade.SEEN_ONCE
    of_claim = grade(7.0, 3.0, error=1.5)
    assert of_claim.contradicting == 1 and of_claim.grade == Grade.UNDECIDED


def test_all_parts_count_and_what_no_set_up_can_judge_leaves_it_open():
    good, bad = {"difference": 9.0}, {"difference": -9.0}
    (held,) = graded([[on_set_up(good, good)]])
    (denied,) = graded([[on_set_up(good, bad)]])
    assert (held.grade, denied.grade) == (Grade.SEEN_ONCE, Grade.FAILS)
    assert denied.decisive.verdict.difference == -9.0
    blocked = good | {"is_blocked": True, "remedy": "3 seeds"}
    (open_,) = graded([[on_set_up(good, blocked)]])
    assert open_.grade == Grade.UNDECIDED
    assert open_.decisive.verdict.reason == "3 seeds" and not open_.decisive.set_ups
    out = blocked | {"is_out_of_reach": True}
    (out_of_reach,) = graded([[on_set_up(good, out)]])
    assert out_of_reach.grade == Grade.OUT_OF_REACH
    (elsewhere,) = graded([[on_set_up(good, out), on_set_up(good, good)]])
    assert elsewhere.grade == Grade.SEEN_ONCE


def test_a_set_up_that_cannot_judge_neither_agrees_nor_makes_it_depend():
    """Two that differ in size alone, and a blocked one."""
    findings = [
        on_set_up({"difference": 12.0}, images="a"),
        on_set_up({"difference": 7.0}, images="b"),
        on_set_up({"difference": 0.0, "is_blocked": True}, images="c"),
    ]
    (of_claim,) = graded([findings])
    assert of_claim.parts[0].heterogeneity < 0.01
    assert (of_claim.grade, of_claim.agreeing) == (Grade.CONFIRMED, 2)


def test_each_part_is_confirmed_by_itself():
    """Two set-ups with a part each have seen each part once."""
    first, second = (
        on_set_up({"difference": 9.0}),
        on_set_up({"difference": 9.0, "part": 1}),
    )
    (of_claim,) = graded([[first, second]])
    assert (of_claim.grade, of_claim.agreeing) == (Grade.SEEN_ONCE, 1)
    assert [part.verdict.part for part in of_claim.parts] == [0, 1]


def test_a_pooled_margin_is_the_mean_of_those_of_the_set_ups():
    margins = {"a": 6.0, "b": 2.0, "c": 4.0}
    findings = [
        on_set_up({"difference": 9.0, "margin": margin}, images=name)
        for name, margin in margins.items()
    ]
    (of_claim,) = graded([findings])
    assert of_claim.parts[0].verdict.margin == pytest.approx(4.0)


def test_of_two_parts_one_makes_it_depend_if_its_p_is_below_half_of_a_twentieth():
    """Gaps of 2.97 and 3.4 have an error of sqrt(2), and so a p of 0.036 and 0.016."""
    assert grade(6.97, 4.0).grade == Grade.DEPENDS
    for first, expected in ((6.97, Grade.UNDECIDED), (7.4, Grade.DEPENDS)):
        findings = [
            on_set_up({"difference": difference}, {"difference": 7.0}, images=name)
            for difference, name in ((first, "a"), (4.0, "b"))
        ]
        (of_claim,) = graded([findings])
        assert of_claim.grade == expected


def test_what_is_not_far_above_fails_and_has_no_size():
    assert grade(3.0, kind="far").grade == Grade.FAILS
    assert grade(-30.0, kind="far").grade == Grade.FAILS


@pytest.mark.parametrize(
    ("favours", "difference", "expected"),
    [
        (Side.FIRST, 9.0, Grade.UNDECIDED),
        (Side.FIRST, -9.0, Grade.FAILS),
        (Side.FIRST, 0.5, Grade.FAILS),  # it may be worse than nothing
        (Side.SECOND, 9.0, Grade.SEEN_ONCE),
        (Side.SECOND, -9.0, Grade.UNDECIDED),
        (Side.UNKNOWN, 9.0, Grade.UNDECIDED),
    ],
)
def test_a_bias_has_a_direction_in_the_pooled_verdict_too(
    favours, difference, expected
):
    assert grade(difference, favours=favours).grade == expected


def test_an_image_that_two_set_ups_share_counts_once():
    drawn = np.random.default_rng(0).normal(size=500)
    noise = drawn / np.linalg.norm(drawn)
    errors = []
    for images in ("xx", "xy"):
        findings = [
            on_set_up({"difference": 3.0}, images=name, noise=noise) for name in images
        ]
        (of_claim,) = graded([findings])
        errors.append(of_claim.parts[0].verdict.comparison.estimate.error)
    assert errors == pytest.approx([1.0, 1 / np.sqrt(2)])


def with_trainings(count: int, **facts: object) -> dict:
    seeds = (SeedPart((count, count), 0.0, 0.0, 40, is_own=False),)
    doubt = Doubt(images=0.5, interaction=0.0, image_count=10**6, seeds=seeds)
    return {"difference": 7.0, "doubt": doubt} | facts


def test_a_season_that_repeats_images_and_features_is_no_set_up_more():
    few = on_set_up(with_trainings(2, features="a", difference=9.0))
    many = on_set_up(with_trainings(3, features="a"))
    others = {
        "features": on_set_up(with_trainings(1, features="b")),
        "images": on_set_up(with_trainings(1, features="a"), images="y"),
        "unknown": on_set_up(with_trainings(1, features="")),
    }
    (alone,) = graded([[few, many]])
    assert alone.grade == Grade.SEEN_ONCE and alone.agreeing == 1
    assert alone.decisive.set_ups == (many,)
    assert few.alone[0].conclusion == Conclusion.HOLDS
    for name, other in others.items():
        (both,) = graded([[few, many, other]])
        assert both.grade == Grade.CONFIRMED, name
        assert both.decisive.set_ups == (many, other)


def test_claims_of_a_paper_are_adjusted_for_each_other():
    wide = {"difference": 7.0, "error": 3.3}  # p 0.034
    assert graded([[on_set_up(wide)]])[0].grade == Grade.SEEN_ONCE
    both = graded([[on_set_up(wide)]] * 2)
    assert [of_claim.grade for of_claim in both] == [Grade.SEEN_ONCE] * 2  # one test
    apart = [[on_set_up(wide | {"error": error})] for error in (3.3, 3.31)]
    assert graded(apart)[0].grade == Grade.UNDECIDED


def test_every_conclusion_has_a_mark():
    bare = {Grade.DRAWINGS, Grade.UNTESTED, Grade.UNCOUNTED}
    marked = {*Conclusion} - {Conclusion.NOT_RUN} | {*Grade} - bare
    assert MARKS.keys() == marked


@pytest.mark.simulation
@pytest.mark.parametrize("count", [2, 9])
@pytest.mark.parametrize(
    ("kind", "effect", "wrong"),
    [
        ("ordered", 0.0, HOLDING),
        ("ordered", -MARGIN, HOLDING),
        ("ordered", MARGIN, FAILING),
        ("ordered", PRINTED, FAILING),
        ("alike", 0.0, FAILING),
        ("alike", MARGIN, HOLDING),
        ("alike", -MARGIN, HOLDING),
        ("alike", PRINTED, HOLDING),
        ("not_better", 0.0, FAILING),
        ("not_better", MARGIN, HOLDING),
        ("not_better", -MARGIN, FAILING),
    ],
)
def test_few_made_up_experiments_are_graded_wrongly(kind, effect, wrong, count):
    """Of 2,000, where an effect lies on a bound or beyond: at most 5%, by set-ups with
    errors between a third of the margin and all of it."""
    rng, grades = np.random.default_rng(11), []
    for _ in range(2000):
        error = float(rng.uniform(MARGIN / 3, MARGIN))
        findings = [
            drawn_on_set_up(rng, effect, error, str(number), kind)
            for number in range(count)
        ]
        (of_claim,) = graded([findings])
        grades.append(of_claim.grade)
    assert np.isin(grades, wrong).mean() <= 0.05
    assert grades.count(Grade.DEPENDS) / len(grades) <= 0.06


def drawn_on_set_up(
    rng: np.random.Generator, effect: float, error: float, images: str, kind: str
) -> Finding:
    """Half of the variance is of images, half of trainings, known from 40."""
    luck = error**2 / 2
    part = SeedPart((1,), luck * rng.chisquare(40) / 40, 0.0, 40, is_own=False)
    doubt = Doubt(images=luck, interaction=0.0, image_count=1000, seeds=(part,))
    difference = effect + error * rng.normal()
    facts = {"difference": difference, "doubt": doubt}
    return on_set_up(facts, images=images, kind=kind)


@pytest.mark.simulation
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(
    ("kind", "effects", "wrong"),
    [
        ("ordered", (0.0, PRINTED), HOLDING),
        ("ordered", (MARGIN, MARGIN), FAILING),
        ("alike", (MARGIN, 0.0), HOLDING),
        ("alike", (0.0, 0.0), FAILING),
        ("not_better", (MARGIN, -MARGIN), HOLDING),
        ("not_better", (0.0, 0.0), FAILING),
    ],
)
def test_few_claims_of_two_parts_on_shared_images_are_graded_wrongly(
    kind, effects, wrong, count
):
    # half of the luck of an image is the same in all set-ups, and in both parts
    rng, grades = np.random.default_rng(12), []
    for _ in range(2000):
        error = float(rng.uniform(MARGIN / 3, MARGIN))
        findings = drawn_on_shared_images(rng, effects, error, count, kind)
        (of_claim,) = graded([findings])
        grades.append(of_claim.grade)
    assert np.isin(grades, wrong).mean() <= 0.05
    assert grades.count(Grade.DEPENDS) / len(grades) <= 0.06


def drawn_on_shared_images(
    rng: np.random.Generator,
    effects: tuple[float, ...],
    error: float,
    count: int,
    kind: str,
) -> list[Finding]:
    """Half of the variance is of 200 images, half of trainings, known from 40."""
    image_count = 200
    luck = error**2 / 2
    spread = np.sqrt(luck * image_count)  # of a single image
    shared_G = rng.normal(size=image_count)
    findings = []
    for _ in range(count):
        parts = []
        for effect in effects:
            own_G = rng.normal(size=image_count)
            luck_G = spread * (shared_G + own_G) / np.sqrt(2)
            noise_G = (luck_G - luck_G.mean()) / image_count
            seen = luck * rng.chisquare(40) / 40
            doubt = Doubt(
                images=float(noise_G @ noise_G),
                interaction=0.0,
                image_count=image_count,
                seeds=(SeedPart((1,), seen, 0.0, 40, is_own=False),),
            )
            training = np.sqrt(luck) * rng.normal()
            difference = effect + luck_G.mean() + training
            parts.append({"difference": difference, "doubt": doubt, "noise": noise_G})
        findings.append(on_set_up(*parts, kind=kind))
    return findings
