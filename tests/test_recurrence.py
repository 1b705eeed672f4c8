"""The GRU of benchmark/layers/recurrence.py against PyTorch's own."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from benchmark.layers import recurrence

LENGTHS, WORD_SIZE, STATE_SIZE = [3, 1, 6, 6, 2], 4, 5


@pytest.fixture(params=[False, True], ids=["one-directional", "bidirectional"])
def gru(request):
    torch.manual_seed(0)
    return nn.GRU(WORD_SIZE, STATE_SIZE, batch_first=True, bidirectional=request.param)


@pytest.mark.parametrize("is_last", [False, True])
def test_states_and_gradients_are_those_of_torch(gru, is_last):
    gru, lengths = gru.double(), sorted(LENGTHS, reverse=True) if is_last else LENGTHS
    words = torch.randn(
        len(LENGTHS), max(LENGTHS), WORD_SIZE, dtype=torch.float64
    ).requires_grad_()
    packed = pack_padded_sequence(
        words, lengths, batch_first=True, enforce_sorted=is_last
    )
    if is_last:
        own, expected = recurrence.last_gru_states(gru, packed), gru(packed)[1]
    else:
        states, of_torch = recurrence.gru_states(gru, packed), gru(packed)[0]
        for part, same in zip(states[1:], of_torch[1:], strict=True):
            assert torch.equal(part, same)
        own, expected = states.data, of_torch.data
    torch.testing.assert_close(own, expected, atol=1e-13, rtol=0)
    weights, leaves = torch.randn_like(expected), [words, *gru.parameters()]
    gradients = (
        torch.autograd.grad((x * weights).sum(), leaves, retain_graph=True)
        for x in (own, expected)
    )
    for gradient, same in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, same, atol=1e-13, rtol=1e-11)
        assert same.abs().max() > 0
