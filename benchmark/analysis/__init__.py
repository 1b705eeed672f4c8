"""From records to statements: boards, comparisons, significance, claims, exports."""
