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


def packed_words(dtype: torch.dtype):
    words = torch.randn(len(LENGTHS), max(LENGTHS), WORD_SIZE, dtype=dtype).requires_grad_()
    lengths = torch.tensor(LENGTHS)
    return words, pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)


def test_states_are_those_of_torch(gru):
    _, packed = packed_words(torch.float64)
    gru = gru.double()
    states, expected = recurrence.gru_states(gru, packed), gru(packed)[0]
    assert states.data.grad_fn is not None
    torch.testing.assert_close(states.data, expected.data, atol=1e-13, rtol=0)
    for part, same in zip(states[1:], expected[1:], strict=True):
        assert torch.equal(part, same)


def test_gradients_are_those_of_torch(gru):
    gru = gru.double()
    words, packed = packed_words(torch.float64)
    weights = torch.randn_like(gru(packed)[0].data)
    leaves = [words, *gru.parameters()]
    own, expected = (
        torch.autograd.grad((states.data * weights).sum(), leaves, retain_graph=True)
        for states in (recurrence.gru_states(gru, packed), gru(packed)[0])
    )
    for gradient, same in zip(own, expected, strict=True):
        torch.testing.assert_close(gradient, same, atol=1e-13, rtol=1e-11)
        assert same.abs().max() > 0


def test_last_states_and_their_gradients_are_those_of_torch(gru):
    gru = gru.double()
    words = torch.randn(len(LENGTHS), max(LENGTHS), WORD_SIZE, dtype=torch.float64).requires_grad_()
    packed = pack_padded_sequence(words, sorted(LENGTHS, reverse=True), batch_first=True)
    leaves, of_last, of_torch = [words, *gru.parameters()], *last_states_of_both(gru, packed)
    torch.testing.assert_close(of_last, of_torch, atol=1e-13, rtol=0)
    weights = torch.randn_like(of_torch)
    own, expected = (
        torch.autograd.grad((states * weights).sum(), leaves, retain_graph=True)
        for states in (of_last, of_torch)
    )
    for gradient, same in zip(own, expected, strict=True):
        torch.testing.assert_close(gradient, same, atol=1e-13, rtol=1e-11)
        assert same.abs().max() > 0


def last_states_of_both(gru, packed):
    return recurrence.last_gru_states(gru, packed), gru(packed)[1]
