"""From the records of a season to rows, boards, flags, and verdicts on the papers'
claims.

How a claim passes through:

    claims          puts its parts to a board, as verdicts that conclude nothing yet, and
                    has stats.verdicts judge them: a ClaimTest, which the season's pages show
    claims_file     writes what a season says to its claims.json, and reads it; a
                    VerdictEntry is a Verdict as it stands there
    claim_ledger    reads all seasons: a LedgerRow for each claim, with a Finding for each
                    dataset
    grades          pools the verdicts of findings on photographs, has them judged in the
                    same way, and says what they amount to: what the ledger's page shows

Nothing here loads torch.
"""
