"""What a revision cost and would cost: the estimate before a run, and the ledger's own sums after it.

Money is spent by the stages and counted by ``claude``; here it is put together over all of them. What does not belong
here: caps (``claude.budget``), which hold whatever is estimated, and prices.
"""
