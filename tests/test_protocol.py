"""The rules of the match: selection, relevance, ranks, ties and refusals."""

import numpy as np
import pytest
import torch
from oracles import ranking as naive
from oracles import whole_matrices

from benchmark.data.prepared_tables import has_sibling
from benchmark.scoring import metrics, validation
from benchmark.scoring.ranking import RefusedError, ranks_of, sentence_ranks
from benchmark.scoring.relevance import Relevance
from benchmark.train.resumable_loop import best_epoch

# Three images; captions 0 and 3 are of image 0, caption 1 of image 2, caption 2 of
# image 1.
OWNERS = np.array([0, 2, 1, 0])
RELEVANT = Relevance.of(np.arange(3), OWNERS).matrix
SCORES = np.array(
    [
        [0.9, 0.2, 0.3, 0.8],
        [0.9, 0.2, 0.5, 0.1],
        [0.4, 0.4, 0.5, 0.1],
    ]
)


def alike_both_ways(scores_IC: np.ndarray) -> dict[str, np.ndarray]:
    return {"i2t": scores_IC, "t2i": scores_IC.T}


@pytest.mark.parametrize(
    ("rsums", "number"),
    [((3.0,), 1), ((1, 5, 2), 2), ((1, 5, 5, 5, 4), 2), ((0, 0, 0), 1)],
)
def test_the_best_epoch_is_selected_and_the_earliest_on_ties(rsums, number):
    assert best_epoch(rsums) == number


@pytest.mark.parametrize("seed", range(3))
def test_validation_recalls_are_those_of_the_evaluation(seed):
    rng = np.random.default_rng(seed)
    owners = np.sort(np.concatenate([np.arange(13), rng.integers(0, 13, 20)]))
    scores = rng.integers(0, 12, (13, len(owners))).astype(np.float32)  # many ties
    scores[owners, np.arange(len(owners))] += rng.integers(0, 9)
    relevant = Relevance.of(np.arange(13), owners).matrix
    expected = metrics.retrieval_metrics(
        whole_matrices.ranks_by_way(alike_both_ways(scores), relevant)
    )
    given = torch.tensor(scores), torch.tensor(relevant)
    recalls = validation.retrieval_recalls(*given, ["i2t", "t2i"])
    assert recalls == pytest.approx({key: expected[key] for key in recalls})
    assert set(recalls) == {"rsum", *metrics.rsum_terms(("i2t", "t2i"))}
    alone = validation.retrieval_recalls(*given, ["t2i"])
    assert alone["rsum"] == pytest.approx(
        sum(expected[f"t2i_r{k}"] for k in (1, 5, 10))
    )
    constant = validation.retrieval_recalls(
        torch.zeros(13, 33), given[1], ["i2t", "t2i"]
    )
    assert (constant["i2t_r1"], constant["t2i_r10"]) == (0, 0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_validation_scores_that_are_not_finite_are_refused(bad):
    scores = torch.tensor(SCORES)
    scores[1, 1] = bad
    with pytest.raises(validation.NotFiniteError, match="NaN or infinity"):
        validation.retrieval_recalls(scores, torch.tensor(RELEVANT), ["t2i"])


def test_both_ways_of_a_literal_matrix():
    ranks = whole_matrices.ranks_by_way(alike_both_ways(SCORES), RELEVANT)
    # i2t: image 0 first, its second caption right behind; image 1 behind caption 0;
    # image 2 ties with caption 0, behind caption 2
    assert ranks["i2t"].values.tolist() == [0, 1, 1, 2]
    assert ranks["i2t"].counts.tolist() == [2, 1, 1]
    assert ranks["i2t"].best.tolist() == [0, 1, 2]
    # t2i: caption 0 ties with image 1, caption 2 with image 2; captions 1 and 3 lead
    assert ranks["t2i"].best.tolist() == [1, 0, 1, 0]
    gap = whole_matrices.tie_gap(alike_both_ways(SCORES), RELEVANT)
    # i2t: the tie of image 2 is behind a better caption; t2i: captions 0 and 2 would
    # lead
    assert gap == {"i2t_r1_tie_gap": 0, "t2i_r1_tie_gap": 50}


@pytest.mark.parametrize("seed", range(4))
def test_ranks_are_those_of_sorting_in_galleries_of_their_own(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (9, 14)).astype(np.float32)
    relevant, gallery = rng.random((9, 14)) < 0.3, rng.random((9, 14)) < 0.8
    relevant[:, 3] = gallery[:, 3] = True
    scores[~gallery] = np.nan
    ranks = ranks_of(scores, relevant, gallery)
    for q in range(9):
        items = np.flatnonzero(gallery[q])
        wanted = np.flatnonzero(relevant[q, items])
        assert ranks.best[q] == naive.best_ranks([scores[q, items]], [wanted])[0]
        own = ranks.values[ranks.queries == q]
        order = sorted(
            range(len(items)), key=lambda n: (-scores[q, items[n]], n in wanted)
        )
        assert own.tolist() == [place for place, n in enumerate(order) if n in wanted]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused_with_their_number(bad):
    scores = SCORES.copy()
    scores[0, 1] = scores[2, 2] = bad
    with pytest.raises(RefusedError, match="2 of 12 scores are NaN or infinite"):
        ranks_of(scores, RELEVANT)


def test_a_query_without_a_relevant_item_is_refused():
    with pytest.raises(ValueError, match="one relevant item"):
        ranks_of(SCORES, np.zeros_like(RELEVANT))


# Captions 0, 1 and 4 are of image 0, caption 2 of image 2, captions 3 and 5 of image 1.
FAMILIES = np.array([0, 0, 2, 1, 0, 1])
SIBLINGS = np.array(
    [
        # best sibling: 0.3; captions 2 and 3 are above it
        [9.0, 0.3, 0.5, 0.4, 0.1, 0.2],
        [0.8, 9.0, 0.8, 0.1, 0.9, 0.0],  # best sibling: 0.9, first
        [0.9, 0.9, 0.1, 0.9, 0.9, 0.9],  # no sibling: no query
        [0.2, 0.1, 0.0, 9.0, 0.5, 0.5],  # its sibling ties with caption 4: behind it
        [0.7, 0.2, 0.1, 0.6, -9.0, 0.5],  # best sibling: 0.7, first
        [-2.0, -1.0, -3.0, -4.0, -1.0, -0.5],  # its sibling is the last of five
    ]
)


def test_sentence_ranks_of_a_literal_matrix():
    ranks = sentence_ranks(SIBLINGS, np.arange(6), FAMILIES)
    assert ranks.best.tolist() == [2, 0, 1, 0, 4]  # of queries 0, 1, 3, 4 and 5
    assert ranks.values.tolist() == [2, 4, 0, 2, 1, 0, 3, 4] and ranks.counts.sum() == 8
    assert SIBLINGS[0, 0] == 9.0  # the scores are not written to
    assert len(sentence_ranks(SIBLINGS, np.arange(6), np.arange(6))) == 0
    assert has_sibling(FAMILIES).tolist() == [True, True, False, True, True, True]


def test_a_sentence_is_not_found_by_itself_however_low_the_others_are():
    lowest = np.full((3, 3), -1e30) + 1e30 * np.eye(3)
    owners = np.array([0, 0, 1])
    # a tie
    assert sentence_ranks(lowest, np.arange(3), owners).values.tolist() == [1, 1]
    assert sentence_ranks(-lowest, np.arange(3), owners).values.tolist() == [1, 1]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_blocks_of_sentences_rank_like_the_whole(size):
    blocks = [np.arange(start, min(start + size, 6)) for start in range(0, 6, size)]
    ranks = [sentence_ranks(SIBLINGS[rows], rows, FAMILIES).values for rows in blocks]
    whole = sentence_ranks(SIBLINGS, np.arange(6), FAMILIES)
    assert np.concatenate(ranks).tolist() == whole.values.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_a_fold_is_a_gallery_of_its_own(seed):
    rng = np.random.default_rng(seed)
    owners = np.sort(np.concatenate([np.arange(12), rng.integers(0, 12, 9)]))
    scores = rng.integers(0, 9, (12, 21)).astype(np.float32)
    relevance = Relevance.of(np.arange(12), owners, folds=3)
    relevant = relevance.matrix
    within = whole_matrices.fold_ranks(alike_both_ways(scores), relevant, relevance)
    parts = []
    for fold in range(3):
        images, captions = np.arange(12) // 4 == fold, owners // 4 == fold
        place = np.ix_(images, captions)
        alone = whole_matrices.ranks_by_way(
            alike_both_ways(scores[place]), relevant[place]
        )
        assert within["i2t"].at(images).values.tolist() == alone["i2t"].values.tolist()
        assert (
            within["t2i"].at(captions).values.tolist() == alone["t2i"].values.tolist()
        )
        parts.append(metrics.retrieval_metrics(alone))
    of_folds = metrics.fold_metrics(within, relevance.fold_of_query)
    for name in parts[0]:
        assert of_folds["fold_values"][name] == [part[name] for part in parts]
        assert of_folds[f"fold_{name}"] == pytest.approx(
            np.mean([part[name] for part in parts])
        )


def test_images_that_cannot_be_divided_evenly_are_refused():
    with pytest.raises(
        ValueError, match="7 images cannot be divided into 5 equal folds"
    ):
        Relevance.of(np.arange(7), np.arange(7), folds=5)
