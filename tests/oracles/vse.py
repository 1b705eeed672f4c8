"""VSE++: its two losses by loops over pairs, and a GRU one word at a time.

s[i][c] is the score of image i and caption c, ids[i] the image that row i shows.
"""

import math


def losses(s, ids, margin):
    """(hardest, all): of the hardest negative and of all, summed over the rows of a batch, each as
    a pair: of wrong captions for every image, of wrong images for every caption."""
    hardest, total = [0.0, 0.0], [0.0, 0.0]
    for row in range(len(s)):
        captions = [0.0]
        images = [0.0]
        for other in range(len(s)):
            if ids[other] != ids[row]:
                captions.append(max(0.0, margin + s[row][other] - s[row][row]))
                images.append(max(0.0, margin + s[other][row] - s[row][row]))
        for side, costs in enumerate((captions, images)):
            hardest[side] += max(costs)
            total[side] += sum(costs)
    return hardest, total


def unit(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def linear(weight, bias, vector):
    return [b + sum(w * x for w, x in zip(row, vector, strict=True)) for row, b in
            zip(weight, bias, strict=True)]  # fmt: skip


def last_state(words, w_in, w_state, b_in, b_state):
    """The state of a GRU after the last word; gates lie in the weights as reset, update, new."""
    size = len(w_state[0])
    state = [0.0] * size
    for word in words:
        of_word, of_state = linear(w_in, b_in, word), linear(w_state, b_state, state)
        following = []
        for d in range(size):
            reset = 1 / (1 + math.exp(-of_word[d] - of_state[d]))
            update = 1 / (1 + math.exp(-of_word[size + d] - of_state[size + d]))
            new = math.tanh(of_word[2 * size + d] + reset * of_state[2 * size + d])
            following.append((1 - update) * new + update * state[d])
        state = following
    return state
