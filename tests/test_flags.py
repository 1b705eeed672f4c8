"""Flags of rows: what differs from the papers, whether trainings converged, what is
near chance."""

import numpy as np
import pandas as pd
import pytest
from builders import board, outcome, standing
from refusals import holds

from benchmark.boards import comparisons, flags
from benchmark.boards.boards import Board, Groups, Outcome, Row
from benchmark.core.records import Aspect, Departure, sentence
from benchmark.season.parameters import BROUGHT
from benchmark.stats.comparisons import Comparison
from benchmark.stats.significance import Doubt


def curve(values: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"epoch": range(1, len(values) + 1), "val_rsum": values})


def network(name: str, **more: object) -> dict:
    return {"image_features": {"settings": {"network": name}}} | more


def flags_of(on: Board, row: Row) -> dict[str, str]:
    return {flag.letter: flag.sentence for flag in flags.row_flags(on, row)}


def departs(
    *cells: Outcome, row: dict | None = None, others: tuple = (), **card: object
) -> dict:
    preset = standing("a", list(cells), **(row or {}))
    return flags_of(board(preset, *others, **card), preset)


WORDS = Departure(aspect=Aspect.WORD_VECTORS, here="trained here")
OTHERS = [
    Departure(aspect=Aspect.IMAGE_NETWORK, here="drawn", in_paper="bottom_up"),
    Departure(aspect=Aspect.GRID_REGIONS, here="6"),
    Departure(aspect=Aspect.IMAGES_STANDARDISED),
    WORDS,
]
LISTED = "; ".join(sentence(OTHERS[place]) for place in (0, 2, 1, 3))
RANDOM = Departure(aspect=Aspect.RANDOM_TEXT_WEIGHTS, texts="sentence")
TOKENS = Departure(aspect=Aspect.TEXT_VECTORS, texts="contextual", here="mini")
PHRASES = Departure(
    aspect=Aspect.TEXT_VECTORS, texts="phrase", here="glove", reads_words=True
)
SCALED_TEXTS = Departure(aspect=Aspect.TEXTS_STANDARDISED, texts="sentence")
FIXED = sentence(TOKENS), "fixed"
EXTRA = "phrases", "annotated", "test captions"
HGLMM = {"G": ("hglmm_1000", "bilstm_max")}
# Of 100 images random scores rank 1, 5 and 10 % that high, in both directions.
CHANCE = {"N": ("rsum", 95.9, "3 times", "32.0")}
SMALL = {"name": "small", "departs": "They are 224 x 224."}
OF_DATA = {"B": ("12 images", "test"), "W": SMALL["departs"].removesuffix(".")}


MINI = {"text_features": {"encoder": "transformer", "weights": "all-MiniLM-L6-v2"}}


def encoded(folder: str) -> dict:
    return {"text_features": {"encoder": folder}}


@pytest.mark.parametrize(
    ("facts", "row", "card", "expected"),
    [
        (network("resnet50"), {"network": "resnet50"}, {}, {}),
        ({"departures": OTHERS}, {}, {}, {"F": LISTED}),
        ({"departures": [RANDOM]}, {}, {}, {"T": sentence(RANDOM)}),
        ({"departures": [SCALED_TEXTS]}, {}, {}, {}),
        (encoded("hglmm_1000"), {"sentence": "bilstm_max"}, {}, HGLMM),
        (encoded("bilstm_max_h512"), {"sentence": "bilstm_max"}, {}, {}),
        (encoded("phrases_bilstm_max_h512"), {"sentence": "bilstm_max"}, {}, {}),
        ({"departures": [PHRASES]}, {}, {}, {"F": sentence(PHRASES), "X": EXTRA}),
        (
            {"departures": [PHRASES], "task": "localisation"},
            {},
            {},
            {"F": sentence(PHRASES)},
        ),
        ({"metrics": {"rsum": 95.9}}, {}, {}, CHANCE),
        ({"metrics": {"rsum": 96.1}}, {}, {}, {}),
        ({}, {}, {"twins": {"images": 12, "captions": 0}, "release": SMALL}, OF_DATA),
        (
            {},
            {},
            {"twins": {"images": 0, "captions": 0}, "release": {"name": "public"}},
            {},
        ),
        (encoded("hglmm_8") | {"method": "mine.py", "departures": OTHERS}, {}, {}, {}),
        (encoded("hglmm_8") | {"departures": OTHERS}, {"of_paper": False}, {}, {}),
        ({"departures": [TOKENS]}, {}, {}, {"G": FIXED}),
        ({"family": BROUGHT}, {}, {}, {"7": ("training data", "not known")}),
    ],
)
def test_what_departs_from_the_paper_is_said(facts, row, card, expected):
    cells = [outcome("a", seed, **facts) for seed in range(3)]
    found = departs(*cells, row=row, **card)
    assert found.keys() == expected.keys()
    for letter, facts in expected.items():
        if isinstance(facts, str):
            assert found[letter] == facts
        else:
            assert holds(found[letter], *facts)


def test_trainings_that_still_rise_are_counted_also_for_a_fusion():
    rising, flat = curve([50, 70, 90, 100]), curve([50, 100, 100, 100, 100, 100])

    def member(*histories: pd.DataFrame) -> Row:
        cells = [outcome("b", seed, history=of) for seed, of in enumerate(histories)]
        return standing("b", cells)

    half, few = member(rising, rising, flat), member(rising, flat, flat)
    said = flags_of(board(half), half)
    assert [*said] == ["C"] and holds(said["C"], "2 of 3 trainings")
    assert flags_of(board(few), few) == {}
    cells = [outcome("a", seed) for seed in range(3)]
    row = {"fuse": {"how": "average", "of": ["b:x", "b:y"]}}
    assert departs(*cells, row=row, others=(half,)) == said


def test_a_fine_tuning_that_never_came_back_to_its_start_says_so():
    start = [outcome("s", seed, history=curve([150, 160, 160])) for seed in range(3)]
    after = [[159, 159, 159], [161, 161, 161], [160, 160, 160]]
    cells = [
        outcome("a", seed, history=curve(of_seed)) for seed, of_seed in enumerate(after)
    ]
    said = departs(*cells, row={"start": "s"}, others=(standing("s", start),))
    assert [*said] == ["D"] and holds(said["D"], "seed 0", 159.0, 160.0)
    assert not holds(said["D"], "seed 1") and not holds(said["D"], "seed 2")
    # what it goes on from is not on the board
    assert departs(*cells, row={"start": "s"}) == {}
    assert departs(*cells) == {}
    without = [outcome("a", seed) for seed in range(3)]
    assert departs(*without, row={"start": "s"}, others=(standing("s", start),)) == {}


@pytest.mark.parametrize(("low", "is_near_chance"), [(95.9, True), (96.1, False)])
def test_so_is_what_cannot_be_told_from_that(low, is_near_chance, monkeypatch):
    monkeypatch.setattr(comparisons, "interval", lambda *of: (low, 150.0))
    cells = [outcome("a", seed, metrics={"rsum": 120.0}) for seed in range(3)]
    found = departs(*cells)
    assert [*found] == ["N"] * is_near_chance
    assert not found or holds(found["N"], "rsum", 95.9, "150.0", "3 times")


def test_a_seed_of_another_commit_may_have_been_added():
    cells = [outcome("a", seed) for seed in range(3)]
    later = cells[2].trainings[0].model_copy(update={"git_commit": "fedcba987654"})
    object.__setattr__(cells[2], "trainings", (later,))
    said = departs(*cells)
    assert [*said] == ["A"] and holds(said["A"], "seed 2", "another commit")


def ranked(seed: int, ranks: list[int], **facts: object) -> Outcome:
    """A cell with these ranks of both directions, and a training of three epochs."""
    both = {"i2t": np.array(ranks), "t2i": np.array(ranks)}
    return outcome("a", seed, ranks=both, history=curve([50, 100, 100]), **facts)


@pytest.fixture
def no_interval(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(comparisons, "interval", lambda *of: None)


def test_seeds_that_are_no_separate_trainings_are_named(no_interval):
    cells = [ranked(0, [0, 3]), ranked(1, [0, 2]), ranked(4, [0, 3])]
    assert holds(departs(*cells)["J"], "seeds 0 and 4", "identical")
    assert "J" not in departs(ranked(0, [0, 3]), ranked(1, [3, 0]))
    ranks = {"i2t": np.array([0, 3])}  # a closed form gives the same with every seed
    assert "J" not in departs(*(outcome("a", seed, ranks=ranks) for seed in range(3)))
    cells = [outcome("a", seed, starts_alike=seed > 0) for seed in range(3)]
    assert [*departs(*cells)] == ["J"]


@pytest.mark.parametrize(
    ("rsum", "ways", "is_told"), [(588.0, 2, True), (587.9, 2, False), (300.0, 1, True)]
)
def test_what_is_nearly_perfect_may_know_the_pairs(
    rsum, ways, is_told, monkeypatch, no_interval
):
    monkeypatch.setattr(
        Board, "groups", property(lambda board: Groups({}, np.arange(100)))
    )
    cells = [outcome("a", seed, metrics={"rsum": rsum}) for seed in range(3)]
    said = departs(*cells, ways=["i2t", "t2i"][-ways:])
    assert [*said] == ["V"] * is_told
    assert not is_told or holds(said["V"], f"rsum {rsum:.1f} of {300 * ways}")
    # of boxes: one direction
    facts = {"task": "localisation", "metrics": {"rsum": 299.0}}
    assert [*departs(*(outcome("a", seed, **facts) for seed in range(3)))] == ["V"]


def test_which_seeds_are_compared_is_said_where_they_differ():
    first, second = (
        standing(x, [outcome(x, s) for s in of])
        for x, of in (("a", [7]), ("b", [0, 1]))
    )
    external = standing("c", [outcome("c", 0, family="brought")])
    said = {second: "seed 7 of a against seeds 0 and 1 of b", first: "", external: ""}
    doubt = Doubt(images=0.0, interaction=0.0, image_count=0, seeds=())
    for other, words in said.items():
        names = {"first": "a", "second": other.preset}
        comparison = Comparison(**names, difference=0.0, doubt=doubt)
        compared = flags.Compared(board=board(first, other), comparison=comparison)
        assert flags.unlike_seeds.caution(compared) == words


def test_an_encoder_that_was_trained_on_the_captions_is_named_in_rows_and_claims():
    read = standing("a", [outcome("a", seed, **MINI) for seed in range(3)])
    other = standing("b", [outcome("b", seed) for seed in range(3)])
    on = board(read, other, reader="flickr8k", title="Flickr8k")
    said = flags_of(on, read)
    assert [*said] == ["5"] and flags_of(on, other) == {}
    for part in ("all-MiniLM-L6-v2", "flickr30k", "Flickr8k", "https://", "not known"):
        assert part in said["5"]
    (caution,) = flags.claim_flags(on, ["a", "b"], [])
    assert (caution.letter, caution.sentence) == ("5", "a")
    assert flags.captions_seen.name in flags.FLATTERING
    assert flags_of(board(read, reader="shapes"), read) == {}
