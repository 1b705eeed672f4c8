"""The rules of the match: protocol, ranking, overlap, records, the stages, the command line."""
