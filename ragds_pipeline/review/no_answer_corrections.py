"""Questions that reviewers changed are other questions: they go through the filters before they count."""

from __future__ import annotations

from collections.abc import Sequence

from ragds_pipeline.claude import Claude, RepliesMissing
from ragds_pipeline.config import Settings
from ragds_pipeline.filters.no_answer_check import NOT_CHECKED, Checked, WholeKb, check
from ragds_pipeline.filters.no_answer_filter import drop_of, filter_drafts
from ragds_pipeline.filters.whole_kb import STAGE
from ragds_pipeline.records_no_answer import NoAnswerDraft


def check_corrections(
    drafts: Sequence[NoAnswerDraft], main_questions: Sequence[str], kb: WholeKb, claude: Claude, settings: Settings
) -> Checked:
    """Return what became of changed questions: drafts in = candidates + drops.

    Where the model cannot be reached they are held (``not_checked``), so that freezing can go on without them.
    """
    found = filter_drafts(drafts, main_questions, kb.confidential, settings.filters.duplicate_score)
    try:
        checked = check(found.drafts, kb, claude, settings)
    except RepliesMissing as error:
        checked = Checked(drops=[drop_of(d, NOT_CHECKED, str(error), STAGE) for d in found.drafts])
    checked.drops = found.drops + checked.drops
    return checked
