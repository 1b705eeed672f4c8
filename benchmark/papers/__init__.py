"""The papers as data: printed tables and claims, and how each method differs from its paper.

<paper>.yaml     tables and claims of a paper; read by printed_tables.py
fidelity/*.yaml  what paper, official code and this implementation do; read by fidelity_notes.py
"""
