"""The recheck sheet: frozen questions whose evidence was edited, old and new side by side; then those to be looked at.

What needs a decision comes first. Below stand the questions that carried over by themselves while the text around their
evidence was edited: they stay in the set unless somebody writes n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import Candidate, Outcome, RevalidatedItem
from ragds_pipeline.review.queue import review_row
from ragds_pipeline.review.rows import ReviewRow, join_spans
from ragds_pipeline.review.standing import FROZEN

RECHECK = "recheck"
"""Name of the sheet's files."""

CARRIED_OVER = (
    "Carried over: the evidence stands as it was, but the text around it was edited. It stays unless you drop it."
)

RECHECK_GUIDE = (
    "How to recheck",
    "The documents were revised. These questions were in the golden set, and the text that proves them was edited.",
    "old evidence is what was frozen; evidence is where it stands now. changes shows, in words, what went [-so-] and "
    "what came {+so+}.",
    "Write y into keep if question and answer still hold as they are. If the answer is another one now, correct answer "
    "(and question or evidence, where need be) and write y. Write n to take the question out of the set.",
    "Rows whose changes begin with \"Carried over\" need no answer: write n only if the question no longer holds.",
    "",
    "再確認の手順",
    "文書が改訂されました。ここにあるのは評価セットに入っていた質問で、根拠となる文が書き換えられたものです。",
    "old evidence は改訂前の根拠、evidence は改訂後の該当箇所です。changes 列には [-削られた語-] と "
    "{+加わった語+} が出ます。",
    "質問と回答がそのまま成り立つなら keep に y、回答が変わるなら answer(必要なら question・evidence も)を直して y、"
    "外すなら n と入力します。",
    "changes が「Carried over」で始まる行は記入しなくてもかまいません。成り立たなくなった場合だけ n とします。",
    "",
    "Come ricontrollare",
    "I documenti sono stati rivisti. Queste domande erano nel golden set e il testo che le prova è stato modificato.",
    "old evidence è il testo di prima, evidence il passo com'è ora. changes mostra che cosa è stato [-tolto-] "
    "e {+aggiunto+}.",
    "Scrivere y in keep se domanda e risposta valgono ancora. Se la risposta è cambiata, correggere answer (e, se "
    "serve, question o evidence) e scrivere y. Scrivere n per togliere la domanda.",
    "Le righe il cui changes comincia con \"Carried over\" non richiedono risposta: scrivere n solo se non valgono "
    "più.",
)  # fmt: skip


def recheck_rows(shown: Mapping[str, ReviewRow], items: Sequence[RevalidatedItem]) -> dict[str, ReviewRow]:
    """Return the rows of ``shown`` (by candidate id) that stand for frozen items with edited evidence, completed."""
    found = {}
    for item in items:
        row = shown.get(item.now_candidate_id)
        if row is not None and item.member == FROZEN and item.outcome == Outcome.TO_PEOPLE:
            found[row.id] = _completed(row, item, "\n".join(part for part in (item.why, item.diff) if part))
    return found


def look_rows(
    candidates: Sequence[Candidate],
    outlines: Mapping[str, Outline],
    items: Sequence[RevalidatedItem],
    context_chars: int,
) -> list[ReviewRow]:
    """Return the rows of the frozen items that carried over with a text around them that was edited."""
    by_id = {candidate.id: candidate for candidate in candidates}
    rows = []
    for item in items:
        carried = item.outcome in (Outcome.CARRIED, Outcome.REANCHORED)
        candidate = by_id.get(item.now_candidate_id)
        if candidate is not None and item.look and carried and item.member == FROZEN:
            row = review_row(candidate, outlines, context_chars)
            rows.append(_completed(row, item, CARRIED_OVER))
    return rows


def _completed(row: ReviewRow, item: RevalidatedItem, changes: str) -> ReviewRow:
    return replace(row, golden_id=item.id, old_evidence=join_spans(item.old_evidence), changes=changes)
