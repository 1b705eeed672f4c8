"""Layers of networks in evaluation mode, one number at a time in float64."""

import math

import numpy as np


def dot(x, y):
    """Inner product."""
    return sum(float(a) * float(b) for a, b in zip(x, y, strict=True))


def affine(weight, x, bias=None):
    """Fully connected: weight (out, in) times x (in,), plus bias (out,) if there is
    one."""
    shift = np.zeros(len(weight)) if bias is None else bias
    result = [dot(row, x) + float(b) for row, b in zip(weight, shift, strict=True)]
    return np.array(result, dtype=np.float64)


def relu(x):
    """max(0, .) of each component."""
    return np.array([max(0.0, float(value)) for value in x], dtype=np.float64)


def batch_norm(x, mean, variance, scale, shift, eps):
    """With running statistics; `scale` and `shift` may be None."""
    result = []
    for d in range(len(x)):
        value = (float(x[d]) - float(mean[d])) / math.sqrt(float(variance[d]) + eps)
        if scale is not None:
            value = value * float(scale[d]) + float(shift[d])
        result.append(value)
    return np.array(result, dtype=np.float64)


def unit(x):
    """A vector over its Euclidean norm; zeros stay zeros."""
    norm = math.sqrt(dot(x, x))
    return np.array([float(value) / norm if norm > 0.0 else 0.0 for value in x])


def cosine(x, y):
    """Of two vectors; 0 if one of them is the zero vector."""
    norms = math.sqrt(dot(x, x)) * math.sqrt(dot(y, y))
    return dot(x, y) / norms if norms > 0.0 else 0.0


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def gru(inputs, w_ih, w_hh, b_ih, b_hh):
    """States (n, D) of a GRU over inputs (n, F), from zeros.

    w_ih (3D, F), w_hh (3D, D), b_ih and b_hh (3D,) hold the gates r, z, n in that
    order; r is applied after the recurrent product with its bias, as PyTorch does.
    """
    size = len(w_hh) // 3
    h, states = [0.0] * size, []
    for x in inputs:
        from_input, from_state = affine(w_ih, x, b_ih), affine(w_hh, h, b_hh)
        following = []
        for d in range(size):
            r = sigmoid(from_input[d] + from_state[d])
            z = sigmoid(from_input[size + d] + from_state[size + d])
            candidate = math.tanh(
                from_input[2 * size + d] + r * from_state[2 * size + d]
            )
            following.append((1.0 - z) * candidate + z * h[d])
        h = following
        states.append(h)
    return np.array(states, dtype=np.float64)


def lstm(inputs, w_ih, w_hh, b_ih, b_hh):
    """States (n, D) of an LSTM; gates input, forget, cell and output in that order."""
    size = len(w_hh) // 4
    h, c, states = np.zeros(size), np.zeros(size), []
    for x in inputs:
        gates = affine(w_ih, x, b_ih) + affine(w_hh, h, b_hh)
        for d in range(size):
            kept = sigmoid(gates[size + d]) * c[d]
            c[d] = kept + sigmoid(gates[d]) * math.tanh(gates[2 * size + d])
        h = np.array(
            [sigmoid(gates[3 * size + d]) * math.tanh(c[d]) for d in range(size)]
        )
        states.append(h)
    return np.array(states)
