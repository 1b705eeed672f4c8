"""Rematch for programs: which of two results is better, and is the difference real?

    import rematch

    rematch.judge(mine, theirs, claim="A > B").conclusion     # "holds"
    rematch.judge_printed(mine, "77.82").conclusion           # "compatible"
    rematch.recalls(similarities, owner)["rsum"]

Each function gives what the verb of its name prints, as a small frozen object with
`summary()`, `to_dict()` and, in notebooks, a table. What cannot be answered raises
`UserError`, a ValueError that says in one line what was expected, what was found, and
what to do. Importing it loads no torch, and changes nothing in the process.
"""

from rematch.answers import (
    Audit,
    Board,
    Plan,
    PrintedRows,
    PrintedVerdict,
    Recalls,
    Verdict,
)
from rematch.comparing import board, judge, judge_claims, judge_printed
from rematch.looking_up import audit, leaderboard, plan, printed
from rematch.scoring import recalls, score

__all__ = [
    "Audit",
    "Board",
    "Plan",
    "PrintedRows",
    "PrintedVerdict",
    "Recalls",
    "UserError",
    "Verdict",
    "audit",
    "board",
    "judge",
    "judge_claims",
    "judge_printed",
    "leaderboard",
    "plan",
    "printed",
    "recalls",
    "score",
]

from benchmark.core.errors import UserError
