"""What methods are fed: rows that are chosen, gathered ahead, and overlaps of boxes."""

import numpy as np
import pytest
import torch

from benchmark.contracts.methods import Captions
from benchmark.scoring.inputs import (
    PhraseInputs,
    SplitInputs,
    ahead,
    proposal_ious,
)

CPU = torch.device("cpu")
OWNERS = torch.tensor([0, 0, 1, 2])


def split() -> SplitInputs:
    """Three images, four captions."""
    lengths = torch.arange(1, 5)
    words = torch.arange(1, 5) * (torch.arange(4) < lengths[:, None])
    return SplitInputs(
        images=torch.arange(6, dtype=torch.float16).reshape(3, 2),
        captions=Captions(values=words, lengths=lengths, lengths_on_host=lengths),
        image_of_caption=OWNERS,
        group_of_image=torch.tensor([7, 8, 7]),
        device=CPU,
    )


def test_what_is_gathered_ahead_comes_in_order():
    assert list(ahead(lambda n: n * n, range(5))) == [0, 1, 4, 9, 16]
    assert list(ahead(lambda n: n, [])) == []


def test_chosen_rows_come_in_their_order_and_keep_their_images():
    chosen = split().chosen(torch.tensor([2, 0]), torch.tensor([3, 1, 2]))
    assert chosen.images.tolist() == [[4, 5], [0, 1]]
    assert chosen.image_of_caption.tolist() == [0, 1, -1]  # one has no image here
    assert chosen.group_of_image.tolist() == [7, 7]
    assert chosen.captions.counts.tolist() == [4, 2, 3]


def test_the_first_images_bring_their_captions_alone():
    first = split().first_images(2)
    assert first.image_of_caption.tolist() == [0, 0, 1]
    assert split().first_images(None).images.shape == (3, 2)


def test_captions_are_as_long_as_the_longest_of_them():
    assert split().captions_at(torch.tensor([0, 1])).values.shape == (2, 2)
    assert split().captions_at(slice(0, 4)).values.shape == (4, 4)


def test_images_of_one_group_are_relevant_to_the_captions_of_all_of_it():
    expected = [[1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 1]]
    assert split().relevant.int().tolist() == expected


def test_batches_have_images_captions_and_groups_of_the_same_rows():
    (batch,) = split().batches([np.array([3, 0])], [None])
    assert batch.images.tolist() == [[4, 5], [0, 1]]
    assert batch.group_ids.tolist() == batch.ids_on_host.tolist() == [7, 7]
    assert batch.captions.values[:, 0].tolist() == [1, 1]


def test_proposals_at_the_edge_are_there_and_boxes_of_zeros_are_missing():
    boxes = [[0, 0, 5, 5], [0, 0, 0, 0], [2, 0, 5, 4]]
    none = torch.zeros(0, dtype=torch.int64)
    phrases = PhraseInputs(
        proposals=torch.arange(3, dtype=torch.float16).reshape(1, 3, 1),
        truths=torch.zeros(0, 1),
        boxes=torch.tensor([boxes], dtype=torch.float32),
        ious=torch.zeros(0, 3),
        image_of_phrase=none,
        chain_of_phrase=none,
        vectors=torch.zeros(0, 1),
        vector_of_phrase=none,
        device=CPU,
    )
    assert phrases.present_proposals_of(0).tolist() == [[0.0], [2.0]]


def test_overlaps_of_boxes_are_those_of_a_loop_over_cells_of_a_grid():
    boxes_IP4 = np.array([[[0, 0, 4, 4], [2, 1, 6, 5], [0, 0, 0, 0]]], np.float32)
    truth_N4 = np.array([[0, 0, 4, 4], [3, 3, 5, 6]], np.float32)
    ious = proposal_ious(boxes_IP4, np.zeros(2, int), truth_N4)
    for phrase, truth in enumerate(truth_N4):
        for proposal, box in enumerate(boxes_IP4[0, :2]):
            first, second = cells(truth), cells(box)
            expected = len(first & second) / len(first | second)
            assert ious[phrase, proposal] == pytest.approx(expected)
    assert np.isnan(ious[:, 2]).all()  # a box without area stands for none


def cells(box: np.ndarray) -> set[tuple[int, int]]:
    left, top, right, bottom = box.astype(int)
    return {(x, y) for x in range(left, right) for y in range(top, bottom)}
