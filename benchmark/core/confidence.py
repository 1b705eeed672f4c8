"""How sure every interval and every test of the project is: the one place to change
it."""

LEVEL = 0.95  # of intervals
PERCENT = f"{LEVEL:.0%}"  # as pages and commands print it
ALPHA = round(1 - LEVEL, 12)  # of tests
TAILS = (ALPHA / 2, 1 - ALPHA / 2)  # the quantiles between which an interval lies
