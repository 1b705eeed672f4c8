"""What two things' results say: differences, intervals, verdicts.

A mean over queries, per run (a training, a seed), is a `Sample`: its values and what
each cluster of queries does to them. `spread` says how far runs lie apart, `compare`
gives the difference of two samples with its interval, `judge` what that says about
claims. Nothing here knows a season, a file or a metric. Array names end in their axes:
Q = queries, G = clusters (images, people, questions), P = rows of a board, S = seeds, H
= hypotheses.

How sure every interval and every test of the project is, stands here: LEVEL is the one
place to change it.
"""

LEVEL = 0.95  # of intervals
PERCENT = f"{LEVEL:.0%}"  # as pages and commands print it
ALPHA = round(1 - LEVEL, 12)  # of tests
TAILS = (ALPHA / 2, 1 - ALPHA / 2)  # the quantiles between which an interval lies
