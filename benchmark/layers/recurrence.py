"""Recurrent networks over the words of captions, without their padding.

On a CPU, PyTorch's own GRU adds a gradient as large as its weights at every step; the
gradients of this one's weights are one product over all steps.

As `torch.nn.utils.rnn` packs and pads sentences of any order, and to the same bits, but
the order is found on the host, where the lengths are known: a GPU gets it in one copy
that nobody waits for.
"""

from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from benchmark.contracts.methods import Captions

# Shape legend: N words of all captions, step by step, the longest caption first in
# every step; B captions, E size of a word, D size of a state.


def states(network: nn.GRU, words_CWE: Tensor, captions: Captions) -> Tensor:
    """Hidden states (C, W, directions * D) of a batch-first network after every word;
    zeros after the last one."""
    packed, places_C = _packed(words_CWE, captions)
    packed = gru_states(network, packed)
    padded, _ = pad_packed_sequence(packed, True, total_length=words_CWE.shape[1])
    return padded.index_select(0, places_C)


def last_states(
    network: nn.GRU | nn.LSTM,
    words_CWE: Tensor,
    captions: Captions,
) -> Tensor:
    """Hidden states (directions, C, D) of a batch-first network after the last word
    that each direction reads."""
    packed, places_C = _packed(words_CWE, captions)
    is_lstm = isinstance(network, nn.LSTM)
    hidden = network(packed)[1][0] if is_lstm else last_gru_states(network, packed)
    return hidden.index_select(1, places_C)


def _packed(words_CWE: Tensor, captions: Captions) -> tuple[PackedSequence, Tensor]:
    """The words, longest caption first, and the place (C,) of each caption in that
    order."""
    lengths, order = torch.sort(captions.counts, descending=True)
    both_2C = torch.stack([order, order.argsort()])
    if words_CWE.device.type == "cuda":
        both_2C = both_2C.pin_memory()
    order_C, places_C = both_2C.to(words_CWE.device, non_blocking=True)
    longest_first = words_CWE.index_select(0, order_C)
    return pack_padded_sequence(longest_first, lengths, batch_first=True), places_C


def gru_states(gru: nn.GRU, packed: PackedSequence) -> PackedSequence:
    """`gru(packed)[0]`, (N, D) or (N, 2 D), of a GRU of one layer."""
    if not _is_faster_here(packed):
        return gru(packed)[0]
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    parameters = dict(gru.named_parameters())
    sizes = packed.batch_sizes.tolist()
    ends = accumulate(sizes)
    spans = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    states = [_Gru.apply(packed.data, spans, *(parameters[name] for name in names))]
    if gru.bidirectional:
        backwards = (parameters[f"{name}_reverse"] for name in names)
        states.append(_Gru.apply(packed.data, spans[::-1], *backwards))
    return packed._replace(data=torch.cat(states, 1))


def last_gru_states(gru: nn.GRU, packed: PackedSequence) -> Tensor:
    """`gru(packed)[1]`, (directions, B, D), of a GRU of one layer."""
    if not _is_faster_here(packed):
        return gru(packed)[1]
    states_ND = gru_states(gru, packed).data
    sizes = packed.batch_sizes
    D = gru.hidden_size
    nth_B = torch.arange(int(sizes[0]))
    last_step_B = (sizes[:, None] > nth_B).sum(0) - 1
    last_rows_B = (sizes.cumsum(0) - sizes)[last_step_B] + nth_B
    last = [states_ND[:, :D].index_select(0, last_rows_B)]
    if gru.bidirectional:
        last.append(states_ND[: len(nth_B), D:])
    return torch.stack(last)


def _is_faster_here(packed: PackedSequence) -> bool:
    on_gpu = packed.data.device.type != "cpu"
    return (
        not on_gpu and torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    )


class _Gru(torch.autograd.Function):
    """The states (N, D) of one direction, which passes the rows `spans` in their
    order."""

    @staticmethod
    def forward(ctx, x_NE, spans, w_ih, w_hh, b_ih, b_hh) -> Tensor:
        inner_N3D = torch.addmm(b_ih, x_NE, w_ih.T)
        D = w_hh.shape[1]
        B = max(span.stop - span.start for span in spans)
        state_BD = x_NE.new_zeros(B, D)
        before_ND, states_ND, new_ND, hidden_ND = (
            x_NE.new_empty(len(x_NE), D) for _ in range(4)
        )
        gates_N2D = x_NE.new_empty(len(x_NE), 2 * D)
        for span in spans:
            state = state_BD[: span.stop - span.start]
            before_ND[span] = state
            outer = torch.addmm(b_hh, state, w_hh.T)
            gates = torch.add(
                outer[:, : 2 * D], inner_N3D[span, : 2 * D], out=gates_N2D[span]
            )
            reset, update = gates.sigmoid_().chunk(2, 1)
            hidden_ND[span] = outer[:, 2 * D :]
            new = torch.add(
                inner_N3D[span, 2 * D :], hidden_ND[span] * reset, out=new_ND[span]
            )
            state.sub_(new.tanh_()).mul_(update).add_(new)
            states_ND[span] = state
        ctx.spans = spans
        ctx.save_for_backward(x_NE, w_ih, w_hh, before_ND, new_ND, hidden_ND, gates_N2D)
        return states_ND

    @staticmethod
    def backward(ctx, of_states_ND):
        x_NE, w_ih, w_hh, before_ND, new_ND, hidden_ND, gates_N2D = ctx.saved_tensors
        D = w_hh.shape[1]
        reset_ND, update_ND = gates_N2D.chunk(2, 1)
        # What the gradient of a state is multiplied with, at all steps at once.
        to_new_ND = (1 - update_ND) * (1 - new_ND.square())
        to_update_ND = (before_ND - new_ND) * update_ND * (1 - update_ND)
        to_reset_ND = hidden_ND * reset_ND * (1 - reset_ND)
        outer_N3D = x_NE.new_empty(len(x_NE), 3 * D)
        of_new_ND = torch.empty_like(new_ND)
        later_BD = x_NE.new_zeros(max(span.stop - span.start for span in ctx.spans), D)
        for span in reversed(ctx.spans):
            later = later_BD[: span.stop - span.start]
            of_state = later.add_(of_states_ND[span])
            of_new = torch.mul(of_state, to_new_ND[span], out=of_new_ND[span])
            outer = outer_N3D[span]
            torch.mul(of_new, to_reset_ND[span], out=outer[:, :D])
            torch.mul(of_state, to_update_ND[span], out=outer[:, D : 2 * D])
            torch.mul(of_new, reset_ND[span], out=outer[:, 2 * D :])
            later.mul_(update_ND[span]).addmm_(outer, w_hh)
        inner_N3D = torch.cat([outer_N3D[:, : 2 * D], of_new_ND], 1)
        of_weights = inner_N3D.T @ x_NE, outer_N3D.T @ before_ND
        return inner_N3D @ w_ih, None, *of_weights, inner_N3D.sum(0), outer_N3D.sum(0)
