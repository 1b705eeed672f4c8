"""From the records of a season to rows, boards, flags, and verdicts on the papers'
claims.

Nothing here loads torch.
"""
