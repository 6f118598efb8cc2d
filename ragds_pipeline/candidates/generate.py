"""Ask for what is planned, in waves: one request of each document at a time, each told the questions before it.

All documents of a wave go out together; within a document a request waits for the one before, because it is told
which questions there are already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from ragds_pipeline.candidates.apportion import two_way
from ragds_pipeline.candidates.reading import STAGE, read_reply
from ragds_pipeline.candidates.single_hop import Shown, build
from ragds_pipeline.candidates.windows import Window, spread, windows
from ragds_pipeline.claude import Claude, Failure, Reply, Request
from ragds_pipeline.config import Settings
from ragds_pipeline.kb.outline import Outline
from ragds_pipeline.records import AskedRow, Difficulty, Draft, Drop, PlanRow


@dataclass
class Generated:
    """What one round brought."""

    drafts: list[Draft] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    asked: list[AskedRow] = field(default_factory=list)

    @property
    def asked_for(self) -> int:
        """Questions asked for in all."""
        return sum(row.asked for row in self.asked)

    @property
    def paid_usd(self) -> Decimal:
        """Paid in this run; replies from the ledger or a recording cost nothing again."""
        return sum((Decimal(row.cost_usd) for row in self.asked if not row.replayed), Decimal(0))


Step = tuple[Window, dict[str, int]]

Known = Callable[[Sequence[Request]], Mapping[str, Reply | Failure]]


def steps(outline: Outline, planned: Mapping[str, int], settings: Settings, turn: int = 0) -> list[Step]:
    """Return the requests for one document in order: which window, and how many questions of each type."""
    total = sum(planned.values())
    limit = settings.candidates.questions_per_request
    shares: list[tuple[Window, int]] = []
    for window, count in spread(total, windows(outline.askable, settings.candidates), turn):
        shares += [(window, min(limit, count - done)) for done in range(0, count, limit)]
    filled = two_way([(at, count) for at, (_, count) in enumerate(shares)], planned)
    return [(shares[at][0], {t: n for t, n in types.items() if n}) for at, types in filled]


def first_requests(
    plan: Iterable[PlanRow], outlines: Mapping[str, Outline], settings: Settings, known: Known = lambda requests: {}
) -> list[Shown]:
    """Return every request of the first round, to estimate cost; nothing is sent.

    Args:
        known: Returns the replies that are there already. Where one is, the requests after it are those that will
            really be sent; after one that is not, they lack the questions it will bring.
    """
    waiting = {
        path: deque(steps(outlines[path], asked, settings)) for path, asked in _by_document(plan, outlines).items()
    }
    questions: dict[str, list[str]] = {path: [] for path in waiting}
    built: dict[str, list[Shown]] = {path: [] for path in waiting}
    while any(waiting.values()):
        wave = [
            build(outlines[path], *left.popleft(), questions[path], settings) for path, left in waiting.items() if left
        ]
        replies = known([shown.request for shown in wave])
        for shown in wave:
            built[shown.outline.path].append(shown)
            if (reply := replies.get(shown.request.key)) is not None:
                drafts, _ = read_reply(shown, reply, 0, settings.candidates.evidence_form)
                questions[shown.outline.path] += [draft.question for draft in drafts]
    return [shown for each in built.values() for shown in each]


def generate(
    plan: Sequence[PlanRow],
    outlines: Mapping[str, Outline],
    known_questions: Mapping[str, Sequence[str]],
    claude: Claude,
    settings: Settings,
    round_: int = 0,
) -> Generated:
    """Ask for the questions in ``plan`` and return drafts and drops, in the order of documents and requests.

    ``known_questions`` are those there are already, by document. Planned questions of a difficulty for which there is
    no generator yet, or of a document that cannot be shown, are dropped with the reason ``no_generator``. Raises
    RepliesMissing where the model cannot be reached at all.
    """
    result = Generated()
    for row in plan:
        if row.difficulty != Difficulty.EASY or row.document_path not in outlines:
            result.asked.append(_not_sent(row, round_))
            result.drops += [_no_generator(row, round_) for _ in range(row.planned)]
    waiting = {
        path: deque(steps(outlines[path], planned, settings, turn=round_))
        for path, planned in _by_document(plan, outlines).items()
    }
    questions = {path: list(known_questions.get(path, ())) for path in waiting}
    while any(waiting.values()):
        wave = []
        for path, left in waiting.items():
            if left:
                window, asked = left.popleft()
                wave.append(build(outlines[path], window, asked, questions[path], settings, round_))
        replies = claude.ask([shown.request for shown in wave])
        booked = {row.request_key for row in result.asked}
        for shown in wave:
            reply = replies[shown.request.key]
            drafts, drops = read_reply(shown, reply, round_, settings.candidates.evidence_form)
            questions[shown.outline.path] += [draft.question for draft in drafts]
            result.drafts += drafts
            result.drops += drops
            told = _asked(shown, reply, round_, len(drafts), len(drops))
            # Two documents may show the very same; the reply to both was paid once.
            result.asked.append(replace(told, cost_usd="0") if told.request_key in booked else told)
            booked.add(told.request_key)
    return result


def _by_document(plan: Iterable[PlanRow], outlines: Mapping[str, Outline]) -> dict[str, dict[str, int]]:
    planned: dict[str, dict[str, int]] = {}
    for row in plan:
        if row.difficulty == Difficulty.EASY and row.document_path in outlines and row.planned:
            types = planned.setdefault(row.document_path, {})
            types[row.type] = types.get(row.type, 0) + row.planned
    return planned


def _asked(shown: Shown, reply: Reply | Failure, round_: int, drafts: int, drops: int) -> AskedRow:
    return AskedRow(
        round=round_,
        document_path=shown.outline.path,
        start_char=shown.window.start_char,
        end_char=shown.window.end_char,
        asked=shown.total,
        drafts=drafts,
        drops=drops,
        reply=str(reply.reason) if isinstance(reply, Failure) else "ok",
        model=reply.model or shown.request.model,
        cost_usd=str(reply.cost_usd),
        replayed=reply.replayed,
        request_key=shown.request.key,
    )


def _not_sent(row: PlanRow, round_: int) -> AskedRow:
    return AskedRow(round_, row.document_path, 0, 0, row.planned, 0, row.planned, "not_sent", "", "0", True, "")


def _no_generator(row: PlanRow, round_: int) -> Drop:
    return Drop(
        stage=STAGE,
        reason="no_generator",
        detail=f"{row.difficulty} questions cannot be generated yet"
        if row.difficulty != Difficulty.EASY
        else "the document cannot be shown to a model",
        document_path=row.document_path,
        item_id="",
        question="",
        type=row.type,
        language=row.language,
        round=round_,
        payload="",
        difficulty=row.difficulty,
    )
