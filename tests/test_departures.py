"""What differs from the papers and whether trainings converged, of made-up records and curves."""

import numpy as np
import pandas as pd
import pytest
from builders import board, outcome, standing

from benchmark.analysis import comparisons, image_noise
from benchmark.analysis.boards import Outcome
from benchmark.analysis.convergence import TOLERANCE, gain, is_best_early, is_rising
from benchmark.analysis.departures import Departure, departures, is_convergence_known, near_chance


def curve(values: list[float], rates: list[float] | None = None) -> pd.DataFrame:
    frame = pd.DataFrame({"epoch": range(1, len(values) + 1), "val_rsum": values})
    return frame if rates is None else frame.assign(learning_rate=rates)


class TestConvergence:
    def test_the_gain_is_that_of_a_line_through_the_last_third(self):
        """Nine epochs: the last three rise by 2 each, of 100 at most."""
        history = curve([10, 60, 90, 94, 95, 95, 96, 98, 100])
        assert gain(history) == pytest.approx(4 / 100)

    def test_at_least_three_epochs_count(self):
        assert gain(curve([70, 80, 90, 100])) == pytest.approx(20 / 100)
        assert gain(curve([50, 100])) == pytest.approx(50 / 100)

    def test_a_jump_at_the_last_change_of_the_rate_says_nothing(self):
        values = [60, 70, 80, 80, 80, 80, 99, 100, 100]
        assert gain(curve(values)) == pytest.approx(1 / 100)
        steps = [1.0] * 5 + [0.1] * 4
        assert gain(curve([*values[:5], 95, 100, 100, 100], steps)) == pytest.approx(0.0)
        steps = [1.0] * 7 + [0.1] * 2  # two epochs are too few to tell
        rising = curve([60, 70, 80, 80, 80, 80, 90, 95, 100], steps)
        assert gain(rising) == pytest.approx(10 / 100)

    @pytest.mark.parametrize(("rise", "expected"), [(0.009, False), (0.011, True)])
    def test_a_hundredth_is_the_limit(self, rise, expected):
        values = [50, 60, 70, 80, 90, 99, *(100 * (1 - rise * (1 - np.arange(3) / 2)))]
        cell = outcome("a", history=curve(values))
        assert is_rising(cell) is expected
        assert (gain(cell.history) > TOLERANCE) is expected

    def test_where_there_is_nothing_to_tell_from_nothing_is_told(self):
        assert is_rising(outcome("a", history=curve([50]))) is None
        assert is_rising(outcome("a", history=curve([0, 0, 0]))) is None
        assert is_rising(outcome("a")) is None
        assert is_rising(outcome("a", history=pd.DataFrame({"loss": [1.0, 0.5]}))) is None

    def test_noise_around_a_plateau_is_seldom_a_rise(self):
        rng, rising = np.random.default_rng(0), 0
        for _ in range(300):
            rising += gain(curve(list(250 + rng.normal(0, 0.5, 24)))) > TOLERANCE
        assert rising <= 6


class TestBestEarly:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([90, 100, 98, 97, 96, 95, 94, 93], True),
            ([90, 98, 100, 97, 96, 95, 94, 93], False),  # the third of eight
            ([90, 100, 98, 97, 97, 98, 99, 99.5], False),  # came back
            ([90, 100, 98], None),
            ([0, 0, 0, 0], None),
        ],
    )
    def test_it_is_the_first_quarter_and_a_fall(self, values, expected):
        assert is_best_early(outcome("a", history=curve(values))) is expected

    def test_half_of_the_trainings_make_a_mark(self):
        early, late = curve([100, 90, 80, 70]), curve([70, 80, 99.9, 100, 100, 100])
        assert departures(*self.of(early, late))[Departure.EARLY] == (
            "1 of 2 trainings were best in the first quarter of their epochs, and fell"
        )
        assert Departure.EARLY not in departures(*self.of(early, late, late))

    def of(self, *histories: pd.DataFrame) -> tuple:
        cell = standing("b", [outcome("b", s, history=h) for s, h in enumerate(histories)])
        return board(cell), cell


def network(name: str, **more: object) -> dict:
    return {"image_features": {"settings": {"network": name}}} | more


def departs(*cells: Outcome, row: dict | None = None, others: tuple = (), **card: object) -> dict:
    preset = standing("a", list(cells), **(row or {}))
    return departures(board(preset, *others, **card), preset)


class TestDepartures:
    def test_a_preset_as_in_the_paper_has_none(self):
        cells = [outcome("a", seed, **network("resnet50")) for seed in range(3)]
        assert departs(*cells, row={"network": "resnet50"}) == {}

    def test_an_old_record_says_what_its_preset_and_encoder_say(self):
        """It has no sentence on the paper's network, nor on random weights."""
        text = {"text_features": {"weights": "random weights"}}
        old = [
            outcome("a", s, deviations=["image features: mobile"], **network("mobile", **text))
            for s in range(3)
        ]
        said = departs(*old, row={"network": "resnet50"})
        assert said == {
            Departure.FEATURES: "image features: mobile, in the paper resnet50",
            Departure.TEXT: "sentence vectors: random weights, in the paper pretrained ones",
        }

    def test_a_record_without_any_facts_is_read(self):
        assert list(departs(*(outcome("a", seed) for seed in range(3)))) == []

    def test_sentences_of_the_record_are_sorted_by_kind(self):
        lines = [
            "image features: drawn, in the paper bottom_up",
            "regions: a 6 x 6 grid instead of a detector's boxes",
            "image features standardised with training statistics",
            "word vectors: trained on the training captions",
        ]
        said = departs(*(outcome("a", seed, deviations=lines) for seed in range(3)))
        assert said == {
            Departure.FEATURES: f"{lines[0]}; {lines[2]}",
            Departure.REGIONS: lines[1],
            Departure.WORDS: lines[3],
        }

    def test_another_sentence_encoder_is_named(self):
        folders = ("hglmm_1000", "bilstm_max_h512", "phrases_bilstm_max_h512")
        departures = []
        for folder in folders:
            facts = {"text_features": {"encoder": folder}}
            cells = [outcome("a", seed, **facts) for seed in range(3)]
            departures.append(departs(*cells, row={"sentence": "bilstm_max"}))
        line = "sentence vectors: hglmm_1000, in the paper bilstm_max"
        assert departures == [{Departure.ENCODER: line}, {}, {}]

    def test_the_budget_is_what_the_season_scaled(self):
        facts = {"scaled": ["epochs", "width"], "options": {"epochs": 3}}
        said = departs(*(outcome("a", seed, **facts) for seed in range(3)))
        assert said == {Departure.BUDGET: "epochs = 3, width"}

    def test_phrases_are_an_extra_input_of_retrieval_alone(self):
        facts = {"trainings": {"b": {"features": {"data/features/x/phrases_hglmm": "0"}}}}
        cells = [outcome("a", seed, **facts) for seed in range(3)]
        assert list(departs(*cells)) == [Departure.INPUT]
        cells = [outcome("a", seed, task="localisation", **facts) for seed in range(3)]
        assert departs(*cells) == {}

    def test_an_ensemble_names_its_trainings_and_two_scores_of_one_are_none(self):
        cells = [outcome("a", seed) for seed in range(3)]
        both = departs(*cells, row={"fuse": {"how": "average", "of": ["b", "c"]}})
        assert both == {Departure.ENSEMBLE: "2 trainings: b, c"}
        assert departs(*cells, row={"fuse": {"how": "average", "of": ["b:x", "b:y"]}}) == {}

    def test_trainings_that_still_rise_are_counted_also_for_a_fusion(self):
        rising, flat = curve([50, 70, 90, 100]), curve([50, 100, 100, 100, 100, 100])
        member = standing(
            "b", [outcome("b", s, history=h) for s, h in enumerate([rising] * 2 + [flat])]
        )
        assert departures(board(member), member) == {
            Departure.RISING: "2 of 3 trainings still improved at the end"
        }
        cells = [outcome("a", seed) for seed in range(3)]
        row = {"fuse": {"how": "average", "of": ["b:x", "b:y"]}}
        assert list(departs(*cells, row=row, others=(member,))) == [Departure.RISING]
        few = standing(
            "b", [outcome("b", s, history=h) for s, h in enumerate([rising] + [flat] * 2)]
        )
        assert departures(board(few), few) == {}

    def test_of_a_fusion_members_of_another_task_count_on_every_board(self):
        rising, flat = curve([50, 70, 90, 100]), curve([50, 100, 100, 100, 100, 100])
        phrases = [outcome("p", s, history=flat, task="localisation") for s in range(3)]
        members = [
            standing("p", phrases),
            standing("b", [outcome("b", s, history=rising) for s in range(3)]),
        ]
        fused = standing(
            "a", [outcome("a", s) for s in range(3)], fuse={"how": "weighted", "of": ["b", "p"]}
        )
        whole = board(*members, fused)
        said = departures(whole, fused)[Departure.RISING]
        assert said == departures(whole.retrieval, fused)[Departure.RISING]
        assert said == "3 of 6 trainings still improved at the end"

    def test_of_an_epoch_and_of_none_convergence_is_not_known(self):
        for history, is_known in ((None, False), (curve([50]), False), (curve([50, 50]), True)):
            cells = [outcome("a", seed, history=history) for seed in range(3)]
            assert (
                is_convergence_known(board(standing("a", cells)), standing("a", cells)) is is_known
            )

    def test_a_fine_tuning_that_never_came_back_to_its_start_says_so(self):
        start = [outcome("s", seed, history=curve([150, 160, 160])) for seed in range(3)]
        after = [[159, 159, 159], [161, 161, 161], [160, 160, 160]]
        cells = [outcome("a", seed, history=curve(of_seed)) for seed, of_seed in enumerate(after)]
        said = departs(*cells, row={"start": "s"}, others=(standing("s", start),))
        assert said == {Departure.START: "best validation rsum: seed 0: 159.0, begun at 160.0"}
        assert departs(*cells, row={"start": "s"}) == {}  # what it goes on from is not on the board
        assert departs(*cells) == {}
        without = [outcome("a", seed) for seed in range(3)]
        assert departs(*without, row={"start": "s"}, others=(standing("s", start),)) == {}

    @pytest.mark.parametrize(
        ("pixels", "stage", "is_said"), [(128, 2, True), (256, 2, False), (128, 1, False)]
    )
    def test_smaller_pictures_of_a_fine_tuning_are_named(self, pixels, stage, is_said):
        facts = {
            "options": {"stage": stage},
            "image_features": {"settings": {"pixels": pixels, "input_size": 224}},
        }
        line = (
            "trained from pictures of 128 pixels a side, in crops of 112, "
            "after features of pictures of 224"
        )
        said = departs(*(outcome("a", seed, **facts) for seed in range(3)))
        assert said == ({Departure.PIXELS: line} if is_said else {})

    @pytest.mark.parametrize(("rsum", "is_near_chance"), [(95.9, True), (96.1, False)])
    def test_less_than_three_times_the_rsum_of_random_scores_is_near_chance(
        self, rsum, is_near_chance
    ):
        """Of 100 images random scores rank 1, 5 and 10 % that high, in both directions."""
        cells = [outcome("a", seed, metrics={"rsum": rsum}) for seed in range(3)]
        expected = [f"rsum {rsum} is less than 3 times the 32.0 of random scores"] * is_near_chance
        assert list(departs(*cells).values()) == expected
        assert [*departs(*cells)] == [Departure.CHANCE] * is_near_chance

    @pytest.mark.parametrize(("low", "is_near_chance"), [(95.9, True), (96.1, False)])
    def test_so_is_what_cannot_be_told_from_that(self, low, is_near_chance, monkeypatch):
        monkeypatch.setattr(comparisons, "interval", lambda *of: (low, 150.0))
        cells = [outcome("a", seed, metrics={"rsum": 120.0}) for seed in range(3)]
        said = "the interval of rsum, 95.9 to 150.0, reaches below 3 times random scores"
        assert departs(*cells) == ({Departure.CHANCE: said} if is_near_chance else {})

    def test_an_own_method_has_no_paper_to_differ_from(self):
        lines = ["image features: drawn", "regions: a grid", "word vectors: trained"]
        facts = {"deviations": lines, "text_features": {"encoder": "hglmm_8"}}
        facts |= {"history": curve([50, 70, 90, 100])}
        said = {
            method: [*departs(*cells, row={"sentence": "mean_words"})]
            for method in ("mine.py", "scan")
            for cells in [[outcome("a", seed, method=method, **facts) for seed in range(3)]]
        }
        from_paper = [Departure.FEATURES, Departure.REGIONS, Departure.WORDS, Departure.ENCODER]
        assert said == {"mine.py": [Departure.RISING], "scan": [*from_paper, Departure.RISING]}

    def test_of_what_was_brought_along_there_is_one_set_of_scores(self):
        assert departs(outcome("a", 0, family="brought")) == {}
        assert [*departs(outcome("a", 0))] == [Departure.FEW]

    @pytest.mark.parametrize(("images", "rsum"), [(12, 433.3), (5, 520.0), (1, 600.0)])
    def test_of_few_images_it_is_nearer_to_random_scores_than_to_perfect_ones(self, images, rsum):
        """Three times the recall of random scores would be more than there is."""
        assert near_chance(rsum + 0.1, 2, images) == ""
        assert near_chance(rsum - 0.1, 2, images).startswith(f"rsum {rsum - 0.1:.1f} is less")

    def test_random_ranks_of_persons_are_near_chance(self):
        """3 persons of 10 images and 10 of 2, searched by captions: 50 images, 8 of them relevant
        to a caption in the mean over images."""
        group_of_image = np.repeat(np.arange(13), [10] * 3 + [2] * 10)
        choices = image_noise.choices_of(group_of_image)
        assert choices == pytest.approx(50 / np.mean([10] * 30 + [2] * 20))
        many = np.repeat(np.arange(300), np.tile([4, 5, 6], 100))
        rng, queries = np.random.default_rng(0), len(many)
        ranked = [many[rng.permutation(queries)[:10]] == many[query] for query in range(queries)]
        rsum = 100 * sum(np.mean([hits[:k].any() for hits in ranked]) for k in (1, 5, 10))
        assert near_chance(rsum, 1, image_noise.choices_of(many)) != ""
        assert near_chance(rsum, 1, queries) == ""

    def test_a_seed_of_another_commit_may_have_been_added(self):
        cells = [outcome("a", seed) for seed in range(3)]
        later = cells[2].trainings[0].model_copy(update={"git_commit": "fedcba987654"})
        object.__setattr__(cells[2], "trainings", (later,))
        said = departs(*cells)
        assert [*said] == [Departure.ADDED]
        assert said[Departure.ADDED].startswith("seed 2: another commit than the first seed")

    def test_few_trainings_twins_and_an_unknown_commit_are_named(self):
        cell = outcome("a", 0)
        unknown = cell.scoring.model_copy(update={"git_commit": "unknown"})
        object.__setattr__(cell, "scoring", unknown)
        leakage = {"items": {"pictures": {"test": 0}, "near_pictures": {"test": 7}}}
        assert departs(cell, leakage=leakage) == {
            Departure.FEW: "1 training of 3",
            Departure.SPLIT: "7 test pictures have a twin in another split",
            Departure.COMMIT: "the commit of its code is not known",
        }
