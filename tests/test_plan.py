"""`plan`: the power of a plan is the share of made-up experiments in which the claim
holds."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import check, refusal, refused
from report_seasons import FUSION, IMAGES, MEMBERS, OWNERS, PRESETS, enter_played_season
from scipy import stats

from benchmark.__main__ import main
from benchmark.commands import plan
from benchmark.data import results
from benchmark.stats import comparisons
from benchmark.stats.claim_kinds import KINDS, ORDERED, Conclusion
from benchmark.stats.comparisons import Sample
from benchmark.stats.significance import Doubt, SeedPart
from benchmark.stats.verdicts import Rule, power

MEASURED = 1000  # images on which the deviations are measured
PAIR = PRESETS[:2]  # they share no training
SPREAD = ("--sd-seeds", "2.1", "--se-images", "4", "--of-images", str(MEASURED))


def drawn(
    rng, effect: float, images: int, seeds: int, spread, *, is_skewed=False
) -> Sample:
    """A row whose mean over images and trainings is `effect`; `spread` has the
    variances of the mean over MEASURED images: of the row alone, of a training's luck,
    of a training."""
    own, luck, main = spread
    shape = (1, images)
    own_G = (
        rng.standard_exponential(shape) - 1 if is_skewed else rng.standard_normal(shape)
    )
    luck_SG = rng.standard_normal((seeds, images))
    values_SG = effect + np.sqrt(MEASURED) * (
        np.sqrt(own) * own_G + np.sqrt(luck) * luck_SG
    )
    values_SG += np.sqrt(main) * rng.standard_normal((seeds, 1))
    means_S = values_SG.mean(1)
    noise_SG = (values_SG - means_S[:, None]) / np.sqrt(images * (images - 1))
    return Sample(dict(enumerate(means_S)), dict(enumerate(noise_SG)), images)


def experiments(
    rule, difference, images, seeds, known, *, claims=1, others=0, runs, skewed=False
):
    """Share of runs in which the claim holds; `others` have three trainings each and
    tell the spread."""
    rng, held = np.random.default_rng([images, seeds, claims, others]), 0
    main = known.seeds - known.interaction
    spread = (known.images / 2, known.interaction, main)
    for _ in range(runs):
        samples = {
            "a": drawn(rng, 300 + difference, images, seeds, spread, is_skewed=skewed),
            "b": drawn(rng, 300, images, seeds, spread, is_skewed=skewed),
        }
        both = list(samples.values())
        samples |= {str(n): drawn(rng, 300, images, 3, spread) for n in range(others)}
        comparison = comparisons.compare(
            ["a", "b"], both, comparisons.spread(samples, samples)
        )
        estimate = comparison.estimate
        adjusted = min(1.0, claims * rule.p(estimate))
        held += rule.conclusion(estimate, adjusted)[0] == Conclusion.HOLDS
    return held / runs


def known(interaction: float = 0.0, error: float = 4.0) -> plan.Known:
    """What SPREAD says; of which `interaction` is the part that other images would
    change."""
    images = error**2 - 2 * interaction**2  # SE is of one training of each
    given = plan.known_from_options(2.1, error, MEASURED)
    return replace(given, images=images, interaction=interaction**2)


PLANS = {
    # kind, margin, difference, seeds, images, claims, others, interaction
    "no spread of images": ("ordered", 3, 9, 3, 1000, 1, 0, 0),
    "all spread of images": ("ordered", 3, 9, 3, 1000, 1, 0, 2.1),
    "two seeds, and images that no longer count": ("ordered", 3, 8, 2, 6000, 1, 0, 0),
    "two seeds": ("ordered", 3, 12, 2, 1000, 1, 0, 1.5),
    "ten seeds": ("ordered", 3, 9, 10, 1000, 1, 0, 1.5),
    "few images": ("ordered", 3, 20, 3, 200, 1, 0, 1.5),
    "many images": ("ordered", 3, 5, 3, 4000, 1, 0, 1.5),
    "within the margin": ("ordered", 6, 4, 5, 4000, 1, 0, 1.5),
    "twelve claims": ("ordered", 3, 15, 3, 1000, 12, 0, 1.5),
    "six other rows": ("ordered", 3, 9, 3, 1000, 1, 6, 1.5),
    "one seed, six others": ("ordered", 3, 12, 1, 1000, 1, 6, 1.5),
    "alike": ("alike", 6, 0, 5, 4000, 1, 0, 1.5),
    "alike, but not equal": ("alike", 6, 2, 5, 4000, 1, 0, 2.1),
    "not better": ("not_better", 6, -2, 3, 1000, 1, 0, 1.5),
    "far": ("far", 4, 15, 3, 1000, 1, 0, 1.5),
}


def compared(name: str, runs: int, **drawing) -> tuple[float, float]:
    """What is planned, and what happens."""
    kind, margin, difference, seeds, images, claims, others, interaction = PLANS[name]
    spread = replace(known(interaction), freedom=2 * others)
    rule = Rule(kind=KINDS[kind], margin=margin)
    planned = power(rule, difference, spread.doubt(seeds, images), claims)
    facts = {"claims": claims, "others": others, "runs": runs} | drawing
    return planned, experiments(rule, difference, images, seeds, spread, **facts)


@pytest.mark.simulation
@pytest.mark.parametrize("name", PLANS)
def test_power_is_within_three_points_of_simulation(name):
    planned, happened = compared(name, 6000)
    print(f"{name}: planned {planned:.1%}, of 6,000 experiments {happened:.1%}")
    assert 0.1 < happened < 0.97
    assert abs(planned - happened) < 0.03


@pytest.mark.simulation
def test_power_is_within_three_points_where_images_are_skewed():
    planned, happened = compared("few images", 6000, skewed=True)
    assert abs(planned - happened) < 0.03


@pytest.mark.parametrize(
    ("number", "rounded"), [(99, 99), (100, 100), (101, 110), (1001, 1100)]
)
def test_numbers_of_images_are_rounded_up_to_two_digits(number, rounded):
    assert plan.two_digits(number) == rounded


def test_the_median_of_all_pairs_tells_what_images_add(monkeypatch):
    """Of three pairs 1, 2 and 9, of which half a point is of these trainings."""
    rows = [SimpleNamespace(preset=name, task="retrieval") for name in "abc"]
    counts = {"test": {"images": 50}}
    board = SimpleNamespace(dataset="made", ranked=rows, card={"counts": counts})
    variances = {"ab": 1.0, "ac": 9.0, "bc": 2.0}
    part = SeedPart((2,), 4.0, 1.0, 8, is_own=False)

    def compare(board, first, second, metric):
        images = variances[first.preset + second.preset] + 0.5
        return SimpleNamespace(doubt=Doubt(images, 0.5, 50, ()))

    of_boards = {
        "values": lambda row, metric: [1.0],
        "trainings_of": lambda board, row: {row.preset},
        "spread_of": lambda *_: SimpleNamespace(part=lambda *_: part),
        "compare": compare,
    }
    for name, function in of_boards.items():
        monkeypatch.setattr(plan.comparisons, name, function)
    monkeypatch.setattr(plan, "read_boards", lambda _: [board])
    monkeypatch.setattr(plan, "read_declaration", lambda _: None)
    known = plan.known_from_season(None, None, None, "rsum")
    assert (known.images, known.image_count) == (pytest.approx(2.0), 50)
    assert (known.seeds, known.interaction, known.freedom) == (4.0, 1.0, 8)


@pytest.mark.parametrize("name", ["two seeds", "alike, but not equal", "far"])
def test_power_could_be_that_of_the_experiments(name):
    planned, happened = compared(name, 300)
    low, high = stats.binom.ppf([0.001, 0.999], 300, planned)
    assert low <= 300 * happened <= high


def printed(capsys, *words: str) -> tuple[list[str], list[list[str]], str]:
    """Heads, rows and the sentence that `plan` prints."""
    assert main(["plan", *words]) == 0
    table, sentence = capsys.readouterr().out.split("\n\n")
    heads, _, *rows = (
        [cell.strip() for cell in line[1:-1].split("|")] for line in table.split("\n")
    )
    return heads, rows, sentence


def test_a_plan_has_its_power_and_what_would_suffice_has_the_wanted_one(capsys):
    words = (*SPREAD, "--difference", "12")
    heads, rows, sentence = printed(
        capsys, *words, "--seeds", "1", "2", "--images", "1000"
    )
    assert heads[1:] == ["1,000 images", "images for 80%"]
    rule, spread = Rule(kind=ORDERED, margin=6), known()
    exact = power(rule, 12, spread.doubt(2, 1000))
    # nothing would be known of other trainings
    assert rows[0] == ["1", "-", "no number"]
    assert rows[1][:2] == ["2", f"{exact:.0%}"]
    needed = int(rows[1][2].replace(",", ""))
    assert power(rule, 12, spread.doubt(2, needed)) >= 0.8
    assert power(rule, 12, spread.doubt(2, round(0.9 * needed))) < 0.8
    assert "margin 6" in sentence and "true difference 12" in sentence


@pytest.mark.parametrize("margin", [None, 5.0])
def test_without_a_difference_the_smallest_that_is_shown_is_told(capsys, margin):
    words = () if margin is None else ("--margin", str(margin))
    _, rows, _ = printed(
        capsys, *SPREAD, *words, "--seeds", "1", "3", "--images", "4000"
    )
    assert rows[0] == ["1", "-"]
    least, doubt = float(rows[1][1]), known().doubt(3, 4000)
    powers = [
        power(Rule(kind=ORDERED, margin=margin or min(6, d / 2)), d, doubt)
        for d in (0.95 * least, least)
    ]
    assert powers[0] < 0.8 <= powers[1] and least > (margin or 0)


NINE = ("--difference", "9")


@pytest.mark.parametrize(
    ("words", "where", "expected"),
    [
        (("--sd-seeds", "2", *NINE), "plan", "--of-images"),
        ((*SPREAD, "--season", "demo", *NINE), "plan", "--of-images"),
        ((*SPREAD, *NINE, "--metric", "rsun"), "--metric", "metric"),
        ((*SPREAD, "--difference", "nan"), "--difference", "finite"),
        ((*SPREAD, *NINE, "--margin", "nan"), "--margin", "finite"),
        ((*SPREAD, *NINE, "--power", "1"), "--power", "below 1"),
        ((*SPREAD, *NINE, "--margin", "9"), "--difference, ordered", "more"),
        (
            (*SPREAD, "--kind", "alike", "--difference", "-7"),
            "--difference, alike",
            "less",
        ),
        ((*SPREAD, "--difference", "-5"), "--difference, ordered", "more"),
        ((*SPREAD, "--difference", "5000"), "--difference", "600"),
        ((*SPREAD, "--kind", "far", *NINE), "--margin", ""),
        ((*SPREAD, *NINE, "--seeds", "3", "0"), "--seeds", "1 or more"),
        ((*SPREAD, *NINE, "--images", "99"), "--images", "100 or more"),
        (
            ("--sd-seeds", "0", "--se-images", "0", *SPREAD[4:], *NINE),
            "plan",
            "not all 0",
        ),
        ((*SPREAD[:2], "--se-images", "nan", *SPREAD[4:], *NINE), "plan", "deviations"),
        ((*SPREAD[:4], "--of-images", "1", *NINE), "--of-images", "2 or more"),
        ((*SPREAD[:4], "--of-images", "9" * 400, *NINE), "--of-images", "at most"),
        ((*SPREAD, *NINE, "--seeds", "9" * 400), "--seeds", "at most"),
        ((*SPREAD, *NINE, "--images", "9" * 400), "--images", "at most"),
        (("--sd-seeds", "1e200", *SPREAD[2:], *NINE), "plan", "at most"),
    ],
)
def test_what_cannot_be_planned_is_refused(words, where, expected):
    check(refusal(plan, *words), where, expected)


class TestSeason:
    @pytest.fixture(autouse=True)
    def played(self, tmp_path_factory, tmp_path, monkeypatch):
        self.params = enter_played_season(
            tmp_path_factory, tmp_path / "work", monkeypatch
        )

    def words(self, *words: str) -> tuple[str, ...]:
        return ("--season", "try", "--dataset", "open", "--difference", "40", *words)

    def test_the_images_part_is_that_of_both_rows_without_the_luck_of_trainings(self):
        kept = results.read_kept("try", "open")

        def of_images(preset: str, seed: int) -> np.ndarray:
            scores = kept[f"{preset}/{seed}"].scores
            added = np.zeros(IMAGES)
            for way, owners in (("i2t", range(IMAGES)), ("t2i", OWNERS)):
                hits = [
                    sum(100 * (rank < k) for k in (1, 5, 10))
                    for rank in scores.best(way)
                ]
                for owner, hit in zip(owners, hits, strict=True):
                    added[owner] += (hit - np.mean(hits)) / len(hits)
            return added

        gaps = [of_images(PAIR[0], seed) - of_images(PAIR[1], seed) for seed in (0, 1)]
        unbiased = IMAGES / (IMAGES - 1)
        both = unbiased * np.sum(np.mean(gaps, axis=0) ** 2)
        luck = unbiased * sum(
            np.sum((gap - np.mean(gaps, axis=0)) ** 2) for gap in gaps
        )
        found = plan.known_from_season("try", "open", PAIR, "rsum")
        assert found.images == pytest.approx(max(0.0, both - luck / 2))
        assert found.image_count == IMAGES and found.seeds > 0 and found.freedom >= 2

    def test_the_spread_of_all_rows_is_told(self, capsys):
        _, rows, sentence = printed(capsys, *self.words())
        assert len(rows) == len(plan.SEEDS)
        known = plan.known_from_season("try", "open", None, "rsum")
        assert sentence.strip().endswith(known.source)

    def test_rows_and_datasets_that_are_not_there_are_told(self):
        check(
            refusal(plan, "--season", "try", "--difference", "40"),
            "--dataset",
            "gated, open",
        )
        check(refusal(plan, *self.words("--like", "vse", PAIR[0])), "vse", PAIR[0])
        for like in (PAIR[:1], (*PAIR, FUSION)):
            with refused("--like", "two rows", found=PAIR[0]):
                plan.known_from_season("try", "open", like, "rsum")
        fusion = refusal(plan, *self.words("--like", FUSION, MEMBERS[0]))
        check(fusion, "try: rsum", do="--sd-seeds")
