"""The only place that talks to a model: requests, ledger, budget, backends, prices.

Stages hand a list of requests to :meth:`Claude.ask` and get back, for each, a reply or a typed failure. In front of
every backend stands the ledger; what is in it is never sent again. What does not belong here: prompts, and what a
reply means to a stage.
"""

from ragds_pipeline.claude.ask import Claude, RepliesMissing, open_claude
from ragds_pipeline.claude.requests import Failure, FailureReason, Reply, Request, Usage

__all__ = ["Claude", "Failure", "FailureReason", "RepliesMissing", "Reply", "Request", "Usage", "open_claude"]
