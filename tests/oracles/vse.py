"""VSE++: its two losses by loops over pairs.

s[i][c] is the score of image i and caption c, ids[i] the image that row i shows.
"""


def losses(s, ids, margin):
    """(hardest, all): of the hardest negative and of all, summed over the rows of a
    batch, each as a pair: of wrong captions for every image, of wrong images for every
    caption."""
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
