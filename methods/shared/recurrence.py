"""Recurrent networks over the words of captions, without their padding.

As `torch.nn.utils.rnn` packs and pads sentences of any order, and to the same bits, but the order
is found on the host, where the lengths are known: a GPU gets it in one copy that nobody waits for.
"""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from methods import Captions


def states(network: nn.RNNBase, words_CWE: Tensor, captions: Captions) -> Tensor:
    """Hidden states (C, W, directions * D) of a batch-first network after every word; zeros after
    the last one."""
    packed, places_C = _packed(words_CWE, captions)
    padded, _ = pad_packed_sequence(network(packed)[0], True, total_length=words_CWE.shape[1])
    return padded.index_select(0, places_C)


def last_state(network: nn.LSTM, words_CWE: Tensor, captions: Captions) -> Tensor:
    """Hidden state (C, D) after the last word of each caption, of an LSTM of one direction."""
    packed, places_C = _packed(words_CWE, captions)
    return network(packed)[1][0].index_select(1, places_C).squeeze(0)


def _packed(words_CWE: Tensor, captions: Captions) -> tuple[PackedSequence, Tensor]:
    """The words, longest caption first, and the place (C,) of each caption in that order."""
    lengths, order = torch.sort(captions.counts, descending=True)
    both_2C = torch.stack([order, order.argsort()])
    if words_CWE.device.type == "cuda":
        both_2C = both_2C.pin_memory()
    order_C, places_C = both_2C.to(words_CWE.device, non_blocking=True)
    longest_first = words_CWE.index_select(0, order_C)
    return pack_padded_sequence(longest_first, lengths, batch_first=True), places_C
