"""Near-duplicate questions: CPU time, recall of planted edits and precision on alike but different pairs.

Run: ``OPENBLAS_NUM_THREADS=1 python benchmarks/near_duplicates.py``. Writes
``benchmarks/results/near_duplicates.md``.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ragds_pipeline.filters.duplicates import first_occurrences, near_duplicates  # noqa: E402
from ragds_pipeline.filters.question_form import QuestionForm  # noqa: E402
from ragds_pipeline_tests.filters.test_duplicates import DIFFERENT, SAME  # noqa: E402
from ragds_pipeline_tests.shared_data import SHARED_DATA  # noqa: E402

QUESTIONS, PLANTED, JAPANESE_SHARE, SEED = 85_000, 30_000, 0.175, 20_261
FILLERS = ["exactly", "usually", "also", "currently", "generally", "still", "actually", "normally"]
FILLERS_JA = ["また", "さらに", "現在", "通常", "主に"]
SENTENCE = re.compile(r"[^.!?。！？\n|#*_`<>\[\]()]{25,160}[.!?。！？]")
"""Prose only: Markdown marks and tables are passed over."""


HELD_OUT = [
    ("Can managers approve overtime?", "Can employees approve overtime?"),
    ("What is the maximum reimbursement for hotels in Rome?", "What is the minimum reimbursement for hotels in Rome?"),
    ("How do I open a support ticket?", "How do I close a support ticket?"),
    ("Who is notified when a request is accepted?", "Who is notified when a request is rejected?"),
    ("What is the deadline for Q1 reports?", "What is the deadline for Q2 reports?"),
    ("Is a visa required for trips inside the EU?", "Is a visa required for trips outside the EU?"),
    ("What does error code E-104 mean?", "What does error code E-140 mean?"),
    ("How much does the Pro plan cost per month?", "How much does the Pro plan cost per year?"),
    ("Which spells can a level 5 wizard cast?", "Which spells can a level 5 warlock cast?"),
    ("What is the hit point maximum of a red dragon?", "What is the hit point maximum of a blue dragon?"),
    ("Is smoking allowed in the office?", "Is smoking prohibited in the office?"),
    ("Quante ore di straordinario sono pagate?", "Quante ore di straordinario non sono pagate?"),
    ("Chi firma il contratto di vendita?", "Chi firma il contratto di acquisto?"),
    ("Qual è la scadenza del primo rimborso?", "Qual è la scadenza dell'ultimo rimborso?"),
    ("What must be done on Monday morning?", "What must be done on Friday morning?"),
    ("How many vacation days do full-time employees get?", "How many vacation days do part-time employees get?"),
    ("How many vacation days do employees get?", "How many vacation days do part-time employees get?"),
    ("What is the policy for contractors?", "What is the policy for former contractors?"),
    ("Did sales in Japan exceed sales in Korea?", "Did sales in Korea exceed sales in Japan?"),
    ("申請書はどこに提出しますか", "申請書はいつ提出しますか"),
    ("退職の手続きを教えてください", "入社の手続きを教えてください"),
    ("第3条の内容は何ですか", "第4条の内容は何ですか"),
    ("上司が部下を評価する時期はいつですか", "部下が上司を評価する時期はいつですか"),
    ("有給休暇は何日ありますか", "病気休暇は何日ありますか"),
]
"""Alike but different pairs, written after the rules and never used to change them."""


def main() -> None:
    if not SHARED_DATA.exists():
        print(f"skipped: real data absent: {SHARED_DATA}")
        return
    rng = random.Random(SEED)
    questions, planted = corpus(rng)
    started, wall = time.process_time(), time.perf_counter()
    pairs = near_duplicates(questions)
    cpu, wall = time.process_time() - started, time.perf_counter() - wall
    started = time.process_time()
    dropped = first_occurrences(questions)
    cpu_first = time.process_time() - started
    report(questions, planted, {(pair.first, pair.second) for pair in pairs}, dropped, (cpu, wall, cpu_first))


def corpus(rng: random.Random) -> tuple[list[str], list[tuple[int, int, str]]]:
    """Return shuffled questions and the planted pairs as (position, position, kind of edit)."""
    english, japanese = english_sentences(), japanese_sentences()
    wanted = QUESTIONS - PLANTED
    ja_wanted = int(wanted * JAPANESE_SHARE)
    bases = varied(japanese, ja_wanted, rng, vary_ja) + varied(english, wanted - ja_wanted, rng, vary_en)
    edits = []
    for base in rng.choices(range(len(bases)), k=PLANTED * 2):
        kind = rng.choice(sorted(EDITS))
        edited = EDITS[kind](bases[base], rng)
        if edited and edited != bases[base]:
            edits.append((base, edited, kind))
        if len(edits) == PLANTED:
            break
    order = list(range(len(bases) + len(edits)))
    rng.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    everything = bases + [edited for _, edited, _ in edits]
    planted = []
    for at, (base, _, kind) in enumerate(edits):
        first, second = sorted((place[base], place[len(bases) + at]))
        planted.append((first, second, kind))
    return [everything[old] for old in order], planted


def english_sentences() -> list[str]:
    texts = (path.read_text(encoding="utf-8") for path in sorted(SHARED_DATA.rglob("*.md")))
    return sorted({" ".join(each.split()) for text in texts for each in SENTENCE.findall(text) if each.count(" ") > 5})


def japanese_sentences() -> list[str]:
    data = json.loads((SHARED_DATA / "jsquad/valid-v1.3.json").read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
    found = {qa["question"] for paragraph in paragraphs for qa in paragraph["qas"]}
    found.update(each for paragraph in paragraphs for each in SENTENCE.findall(paragraph["context"]))
    return sorted(found)


def varied(sentences: list[str], count: int, rng: random.Random, vary: Vary) -> list[str]:
    """Return ``count`` distinct sentences: the real ones, then mixtures of two of them."""
    chosen = dict.fromkeys(rng.sample(sentences, min(count, len(sentences))))
    while len(chosen) < count:
        chosen[vary(sentences, rng)] = None
    return list(chosen)


def vary_en(sentences: list[str], rng: random.Random) -> str:
    """The first half of one sentence and the second of another."""
    one, other = (rng.choice(sentences).split(" ") for _ in range(2))
    return " ".join(one[: (len(one) + 1) // 2] + other[len(other) // 2 :])


def vary_ja(sentences: list[str], rng: random.Random) -> str:
    one, other = (rng.choice(sentences) for _ in range(2))
    return one[: (len(one) + 1) // 2] + other[len(other) // 2 :]


Vary = Callable[[list[str], random.Random], str]


def is_japanese(text: str) -> bool:
    return re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", text) is not None


def swap(text: str, rng: random.Random) -> str | None:
    """Two neighbouring words change places; in Japanese, two neighbouring stretches after a comma."""
    if is_japanese(text):
        parts = re.split(r"(?<=、)", text)
        if len(parts) < 3:
            return None
        at = rng.randrange(len(parts) - 2)
        return "".join([*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]])
    words = text.split(" ")
    at = rng.randrange(len(words) - 1)
    words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)


def insert(text: str, rng: random.Random) -> str | None:
    if is_japanese(text):
        at = rng.randrange(1, len(text) - 1)
        return text[:at] + rng.choice(FILLERS_JA) + text[at:]
    words = text.split(" ")
    words.insert(rng.randrange(1, len(words)), rng.choice(FILLERS))
    return " ".join(words)


def drop(text: str, rng: random.Random) -> str | None:
    """A word goes; in Japanese, two characters. One that makes a different question by definition is left
    alone."""
    if is_japanese(text):
        at = rng.randrange(1, len(text) - 3)
        gone, edited = text[at : at + 2], text[:at] + text[at + 2 :]
    else:
        words = text.split(" ")
        gone = words.pop(rng.randrange(len(words)))
        edited = " ".join(words)
    return None if changes_meaning(gone, text, edited) else edited


def changes_meaning(gone: str, text: str, edited: str) -> bool:
    """Whether the word dropped was a number or a negation, which makes another question on purpose."""
    one, other = QuestionForm(text), QuestionForm(edited)
    return (one.numbers, one.negations) != (other.numbers, other.negations)


def punctuate(text: str, rng: random.Random) -> str | None:
    end = "？" if is_japanese(text) else "?"
    return text.rstrip(".!?。！？") + rng.choice(["", end, end * 2, "…"])


def change_case(text: str, rng: random.Random) -> str | None:
    if is_japanese(text):
        return text.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    return rng.choice([str.lower, str.upper, str.title])(text)


def swap_and_punctuate(text: str, rng: random.Random) -> str | None:
    edited = swap(text, rng)
    return edited and punctuate(edited, rng)


EDITS: dict[str, Callable[[str, random.Random], str | None]] = {
    "two words exchanged": swap,
    "word inserted": insert,
    "word dropped": drop,
    "punctuation": punctuate,
    "case or width": change_case,
    "words exchanged, punctuation": swap_and_punctuate,
}


def report(
    questions: list[str],
    planted: list[tuple[int, int, str]],
    found: set[tuple[int, int]],
    dropped: dict[int, int],
    seconds: tuple[float, float, float],
) -> None:
    groups = transitive(found)
    kinds, hits = Counter[str](), Counter[str]()
    for first, second, kind in planted:
        kinds[kind] += 1
        # Copies equal but for case and the like are paired with the first of them only, so groups are
        # compared.
        hits[kind] += groups.get(first, first) == groups.get(second, -second - 1)
    same = sum(bool(near_duplicates(list(pair))) for pair in SAME)
    wrong = [pair for pair in DIFFERENT if near_duplicates(list(pair))]
    missed = [pair for pair in HELD_OUT if near_duplicates(list(pair))]
    removed = sum(first in dropped or second in dropped for first, second, _ in planted)
    ja = sum(map(is_japanese, questions)) / len(questions)
    lines = [
        "# Near-duplicate questions",
        "",
        "`OPENBLAS_NUM_THREADS=1 python benchmarks/near_duplicates.py`, 2 cores (shared), one thread.",
        f"{len(questions):,} questions, {ja:.0%} Japanese: sentences of the real documents and of JSQuAD",
        "in `../shared/data`, then mixtures of the first half of one and the second half of another, so that",
        f"many share half their words; {len(planted):,} planted edits, each of one question; seed {SEED}.",
        "Dropped numbers and negations are not planted, as they make another question by definition. Precision",
        "among the 85,000 is not measured. The rules were written against the hand-made pairs, which are those of",
        "`ragds_pipeline_tests/filters/test_duplicates.py`, and not against the held-out ones.",
        "",
        "| figure | value |",
        "|---|---|",
        f"| `near_duplicates`, CPU s (wall s) | {seconds[0]:.1f} ({seconds[1]:.1f}) |",
        f"| `first_occurrences`, CPU s, all included | {seconds[2]:.1f} |",
        f"| planted edits in one group of duplicates | {sum(hits.values()) / len(planted):.1%} |",
        f"| planted edits of which one is dropped | {removed / len(planted):.1%} |",
        *(f"| — {kind} | {hits[kind] / kinds[kind]:.1%} of {kinds[kind]:,} |" for kind in sorted(kinds)),
        f"| pairs returned | {len(found):,} |",
        f"| questions dropped | {len(dropped):,} |",
        f"| hand-made duplicates found | {same} of {len(SAME)} |",
        f"| hand-made different pairs left alone | {len(DIFFERENT) - len(wrong)} of {len(DIFFERENT)} |",
        f"| held-out different pairs left alone | {len(HELD_OUT) - len(missed)} of {len(HELD_OUT)} |",
        "",
        "Held-out pairs wrongly taken for duplicates:",
        "",
        *(f"* {one} / {other}" for one, other in missed),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (ROOT / "benchmarks/results/near_duplicates.md").write_text(text, encoding="utf-8")


def transitive(pairs: set[tuple[int, int]]) -> dict[int, int]:
    """Return the group of each member of a pair."""
    parent: dict[int, int] = {}

    def root(at: int) -> int:
        while parent.setdefault(at, at) != at:
            parent[at] = at = parent[parent[at]]
        return at

    for first, second in pairs:
        parent[root(second)] = root(first)
    return {at: root(at) for at in list(parent)}


if __name__ == "__main__":
    main()
