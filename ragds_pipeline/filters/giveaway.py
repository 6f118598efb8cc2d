"""Does the question already hold its answer?"""

from __future__ import annotations

import re

from ragds_pipeline.filters.question_form import QuestionForm
from ragds_pipeline.spans.match_key import LENIENT, key_of

REASON = "answer_in_question"

_CHOICE = re.compile(r"\bor\b|\boppure\b|\bo\b|か、|または|それとも|どちら|どっち|\bvs\b", re.IGNORECASE)
"""Signs of a question that names the possible answers on purpose: 'is it A or B'."""

_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        "a an the of in on at to for by with from as is are was were be been it its this that and or if not no yes "
        "il lo la i gli le l un uno una di a da in con su per tra fra e è sono al del della dei delle nel nella che si",
    )
)
_MIN_WORDS = 3


def gives_itself_away(question: str, answer: str, overlap: float) -> bool:
    """Return whether the answer can be read off the question.

    That is so where the whole answer stands in the question (case, width and white space apart), or where at least
    ``overlap`` of the answer's content words (single characters in Japanese) stand in it and it adds no number of its
    own. A question that names the choices ('in days or in weeks?') does not give itself away by naming them.
    """
    if _CHOICE.search(question):
        return False
    answer_key, question_key = key_of(answer.strip(" .。!?"), LENIENT), key_of(question, LENIENT)
    if len(answer_key) >= 4 and answer_key in question_key:
        return True
    said, asked = QuestionForm(answer), QuestionForm(question)
    words = [word for word in said.units.elements() if word not in _FUNCTION_WORDS]
    if len(words) < _MIN_WORDS or set(said.numbers) - set(asked.numbers):
        return False
    known = sum((said.units & asked.units)[word] for word in set(words))
    return known / len(words) >= overlap
