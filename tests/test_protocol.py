"""The rules of the match: selection, relevance, refusals, and the keys of a record's metrics."""

import numpy as np
import pytest
import torch
from oracles import whole_matrices

from benchmark import protocol
from benchmark.train import selection

# Three images; captions 0 and 3 are of image 0, caption 1 of image 2, caption 2 of image 1.
OWNERS = np.array([0, 2, 1, 0])
SCORES = np.array(
    [
        [0.9, 0.2, 0.3, 0.8],
        [0.9, 0.2, 0.5, 0.1],
        [0.4, 0.4, 0.5, 0.1],
    ]
)


def of_pairs(scores_IC: np.ndarray) -> dict[str, np.ndarray]:
    """The same score of a pair in both directions."""
    return {"i2t": scores_IC, "t2i": scores_IC.T}


@pytest.mark.parametrize(
    ("rsums", "number"), [((3.0,), 1), ((1, 5, 2), 2), ((1, 5, 5, 5, 4), 2), ((0, 0, 0), 1)]
)
def test_the_best_epoch_is_selected_and_the_earliest_on_ties(rsums, number):
    assert selection.selected(rsums) == number


@pytest.mark.parametrize("seed", range(6))
def test_validation_recalls_are_those_of_the_protocol(seed):
    rng = np.random.default_rng(seed)
    owners = np.sort(np.concatenate([np.arange(13), rng.integers(0, 13, 20)]))
    scores = rng.integers(0, 12, (13, len(owners))).astype(np.float32)  # many ties
    scores[owners, np.arange(len(owners))] += rng.integers(0, 9)
    expected = protocol.retrieval_metrics(
        protocol.retrieval_ranks(of_pairs(scores), protocol.relevance(np.arange(13), owners))
    )
    relevant = torch.tensor(protocol.relevance(np.arange(13), owners))
    recalls = selection.retrieval_recalls(torch.tensor(scores), relevant, ["i2t", "t2i"])
    assert recalls == pytest.approx({key: expected[key] for key in recalls})
    assert set(expected) - set(recalls) == {"i2t_medr", "t2i_medr", "i2t_meanr", "t2i_meanr"}
    constant = selection.retrieval_recalls(torch.zeros(13, 33), relevant, ["i2t", "t2i"])
    assert (constant["i2t_r1"], constant["t2i_r10"]) == (0, 0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_validation_scores_that_are_not_finite_are_refused(bad):
    scores = torch.tensor(SCORES)
    scores[1, 1] = bad
    with pytest.raises(selection.NotFiniteError, match="NaN or infinity"):
        relevant = torch.tensor(protocol.relevance(np.arange(3), OWNERS))
        selection.retrieval_recalls(scores, relevant, ["t2i"])


def test_relevance_follows_the_owners_of_captions():
    assert protocol.relevance(np.arange(3), OWNERS).astype(int).tolist() == [
        [1, 0, 0, 1],
        [0, 0, 1, 0],
        [0, 1, 0, 0],
    ]


def test_both_ways_of_a_literal_matrix():
    relevant = protocol.relevance(np.arange(3), OWNERS)
    ranks = protocol.retrieval_ranks(of_pairs(SCORES), relevant)
    # i2t: image 0 first; image 1 behind caption 0; image 2 ties with caption 0, behind caption 2
    assert ranks["i2t"].tolist() == [0, 1, 2]
    # t2i: caption 0 ties with image 1, caption 2 with image 2; captions 1 and 3 lead
    assert ranks["t2i"].tolist() == [1, 0, 1, 0]
    assert ranks["t2i"].tolist() == protocol.positive_ranks(SCORES.T, relevant.T).tolist()


def test_each_direction_is_ranked_by_its_own_scores():
    """Adaptive fusion weights scores query by query: t2i is not the transpose of i2t."""
    relevant = protocol.relevance(np.arange(3), OWNERS)
    scores = {"i2t": SCORES, "t2i": 2.0 * relevant.T}
    ranks = protocol.retrieval_ranks(scores, relevant)
    assert ranks["i2t"].tolist() == [0, 1, 2]
    assert ranks["t2i"].tolist() == [0, 0, 0, 0]
    assert whole_matrices.tie_gap(scores, relevant, ranks) == {
        "i2t_r1_tie_gap": 0,
        "t2i_r1_tie_gap": 0,
    }


def test_metrics_have_the_records_keys():
    relevant = protocol.relevance(np.arange(3), OWNERS)
    metrics = protocol.retrieval_metrics(protocol.retrieval_ranks(of_pairs(SCORES), relevant))
    assert set(metrics) == {
        f"{way}_{name}" for way in ("i2t", "t2i") for name in ("r1", "r5", "r10", "medr", "meanr")
    } | {"rsum"}
    assert metrics["i2t_r1"] == pytest.approx(100 / 3)
    assert metrics["t2i_r1"] == 50
    assert (metrics["i2t_medr"], metrics["t2i_medr"]) == (2, 1)
    assert (metrics["i2t_meanr"], metrics["t2i_meanr"]) == (2, 1.5)
    assert metrics["rsum"] == pytest.approx(100 / 3 + 50 + 400)


@pytest.mark.parametrize("way", ["i2t", "t2i"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused_with_their_number(bad, way):
    scores = of_pairs(SCORES.copy())
    scores = scores | {way: scores[way].copy()}
    scores[way][0, 1] = scores[way][2, 2] = bad
    with pytest.raises(protocol.RefusedError, match="2 of 12 scores are NaN or infinite"):
        protocol.retrieval_ranks(scores, protocol.relevance(np.arange(3), OWNERS))


def test_tie_gap_of_a_literal_matrix():
    relevant = protocol.relevance(np.arange(3), OWNERS)
    scores = of_pairs(SCORES)
    gap = whole_matrices.tie_gap(scores, relevant, protocol.retrieval_ranks(scores, relevant))
    # i2t: the tie of image 2 is behind a better caption; t2i: captions 0 and 2 would lead
    assert gap == {"i2t_r1_tie_gap": 0, "t2i_r1_tie_gap": 50}


# Captions 0, 1 and 4 are of image 0, caption 2 of image 2, captions 3 and 5 of image 1.
FAMILIES = np.array([0, 0, 2, 1, 0, 1])
SIBLINGS = np.array(
    [
        [9.0, 0.3, 0.5, 0.4, 0.1, 0.2],  # best sibling: 0.3; captions 2 and 3 are above it
        [0.8, 9.0, 0.8, 0.1, 0.9, 0.0],  # best sibling: 0.9, first
        [0.9, 0.9, 0.1, 0.9, 0.9, 0.9],  # no sibling: no query
        [0.2, 0.1, 0.0, 9.0, 0.5, 0.5],  # its sibling ties with caption 4: behind it
        [0.7, 0.2, 0.1, 0.6, -9.0, 0.5],  # best sibling: 0.7, first
        [-2.0, -1.0, -3.0, -4.0, -1.0, -0.5],  # its sibling is the last of five
    ]
)


def test_sentence_ranks_of_a_literal_matrix():
    ranks = protocol.sentence_ranks(SIBLINGS, slice(0, 6), FAMILIES)
    assert ranks.tolist() == [2, 0, 1, 0, 4]  # of queries 0, 1, 3, 4 and 5
    assert SIBLINGS[0, 0] == 9.0  # the scores are not written to


def test_a_sentence_is_not_found_by_itself():
    """Whatever its own score, even where all the others are lower than any."""
    lowest = np.full((3, 3), -1e30) + 1e30 * np.eye(3)
    owners = np.array([0, 0, 1])
    assert protocol.sentence_ranks(lowest, slice(0, 3), owners).tolist() == [1, 1]  # a tie
    assert protocol.sentence_ranks(-lowest, slice(0, 3), owners).tolist() == [1, 1]


@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_blocks_of_sentences_rank_like_the_whole(size):
    blocks = [slice(start, min(start + size, 6)) for start in range(0, 6, size)]
    ranks = [protocol.sentence_ranks(SIBLINGS[rows], rows, FAMILIES) for rows in blocks]
    whole = protocol.sentence_ranks(SIBLINGS, slice(0, 6), FAMILIES)
    assert np.concatenate(ranks).tolist() == whole.tolist()


def test_sentence_scores_that_are_not_finite_are_refused_with_their_number():
    scores = SIBLINGS.copy()
    scores[2, 3] = np.nan
    with pytest.raises(protocol.RefusedError, match="1 of 36 scores are NaN or infinite"):
        protocol.sentence_ranks(scores, slice(0, 6), FAMILIES)


def test_sentences_without_siblings_are_no_queries():
    ranks = protocol.sentence_ranks(SIBLINGS, slice(0, 6), np.arange(6))
    assert ranks.shape == (0,)


def test_overlap_metrics_of_cosines():
    rng = np.random.default_rng(0)
    matched, unmatched = rng.uniform(-0.5, 1, 300), rng.uniform(-1, 0.5, 900)
    metrics = protocol.score_metrics(matched, unmatched)
    assert metrics == {
        "overlap_s": protocol.overlap(matched, unmatched, bins=200, range=(-1.0, 1.0)),
        "overlap_range": [-1.0, 1.0],
        "overlap_bins": 200,
        "overlap_s_half_bins": protocol.overlap(matched, unmatched, bins=100, range=(-1.0, 1.0)),
        "overlap_s_double_bins": protocol.overlap(matched, unmatched, bins=400, range=(-1.0, 1.0)),
        "one_minus_ks": protocol.one_minus_ks(matched, unmatched),
        "mean_matched": pytest.approx(matched.sum() / 300),
        "mean_unmatched": pytest.approx(unmatched.sum() / 900),
    }
    assert metrics["overlap_s_half_bins"] > metrics["overlap_s_double_bins"]


def test_overlap_metrics_of_other_scores_span_their_support():
    matched, unmatched = np.array([2.0, 3.0], np.float32), np.array([-1.5, 2.5], np.float32)
    metrics = protocol.score_metrics(matched, unmatched)
    assert metrics["overlap_range"] == [-1.5, 3.0]
    assert all(type(bound) is float for bound in metrics["overlap_range"])  # goes into JSON


def test_the_interval_of_s_reflects_its_replicates():
    replicates = np.random.default_rng(0).permutation(np.linspace(0.2, 0.4, 201))
    metrics = protocol.overlap_interval(0.35, replicates)  # the replicates lie 0.05 too low
    assert metrics == pytest.approx({"overlap_s_low": 0.305, "overlap_s_high": 0.495})
    with_a_gap = np.append(replicates, np.nan)  # a resample without unmatched pairs
    assert protocol.overlap_interval(0.35, with_a_gap) == metrics
    assert all(type(bound) is float for bound in metrics.values())  # goes into JSON
    assert protocol.overlap_interval(0.9, replicates)["overlap_s_high"] == 1.0


def test_a_caption_has_a_sibling_where_its_image_has_another_caption():
    assert protocol.has_sibling(FAMILIES).tolist() == [True, True, False, True, True, True]
    assert protocol.has_sibling(np.arange(3)).tolist() == [False] * 3


# Groups, one way, and folds ----------------------------------------------------------------------


def test_any_image_of_the_group_is_relevant():
    images, captions = np.array([0, 1, 0]), np.array([1, 0])
    assert protocol.relevance(images, captions).astype(int).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_one_way_alone_has_its_own_rsum():
    rng = np.random.default_rng(3)
    scores, relevant = rng.normal(size=(6, 8)), protocol.relevance(np.arange(6), np.arange(8) % 6)
    ranks = protocol.retrieval_ranks({"t2i": scores.T}, relevant)
    both = protocol.retrieval_ranks(of_pairs(scores), relevant)
    assert set(ranks) == {"t2i"} and (ranks["t2i"] == both["t2i"]).all()
    metrics = protocol.retrieval_metrics(ranks)
    assert metrics["rsum"] == sum(metrics[f"t2i_r{k}"] for k in (1, 5, 10))
    assert not [name for name in metrics if name.startswith("i2t")]
    recalls = selection.retrieval_recalls(torch.tensor(scores), torch.tensor(relevant), ["t2i"])
    assert recalls == pytest.approx({key: metrics[key] for key in recalls})


@pytest.mark.parametrize("seed", range(3))
def test_a_fold_is_a_gallery_of_its_own(seed):
    rng = np.random.default_rng(seed)
    owners = np.sort(np.concatenate([np.arange(12), rng.integers(0, 12, 9)]))
    scores = rng.integers(0, 9, (12, 21)).astype(np.float32)
    relevant = protocol.relevance(np.arange(12), owners)
    within = whole_matrices.fold_ranks(of_pairs(scores), relevant, owners, folds=3)
    parts = []
    for fold in range(3):
        images = slice(4 * fold, 4 * fold + 4)
        captions = owners // 4 == fold
        part = scores[images, captions]
        alone = protocol.retrieval_ranks(of_pairs(part), relevant[images, captions])
        assert (within["i2t"][images] == alone["i2t"]).all()
        assert (within["t2i"][captions] == alone["t2i"]).all()
        parts.append(protocol.retrieval_metrics(alone))
    metrics = protocol.fold_metrics(within, owners, folds=3)
    for name in parts[0]:
        assert metrics["fold_values"][name] == [part[name] for part in parts]
        assert metrics[f"fold_{name}"] == pytest.approx(np.mean([part[name] for part in parts]))


def test_images_that_cannot_be_divided_evenly_are_refused():
    with pytest.raises(ValueError, match="7 images cannot be divided into 5 equal folds"):
        whole_matrices.fold_ranks({"i2t": np.eye(7)}, np.eye(7, dtype=bool), np.arange(7), folds=5)
