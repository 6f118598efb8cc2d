"""How a request reaches a model: directly (``api``), or through files (``file``). One module each.

A backend gets requests that are not in the ledger and hands over each reply as it comes; it knows nothing of
tasks, prompts or stages.
"""
