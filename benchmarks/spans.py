"""Match keys and the search for quotes: CPU time in their own document and anywhere in 70 MB of text.

Run: ``OPENBLAS_NUM_THREADS=1 python benchmarks/spans.py``. Writes ``benchmarks/results/spans.md``. Every
search is checked: a quote taken from a place must be found there.
"""

from __future__ import annotations

import json
import random
import re
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ragds_pipeline.kb.normalise import normalise  # noqa: E402
from ragds_pipeline.spans import occurrences  # noqa: E402
from ragds_pipeline.spans.locate import MIN_KEY_CHARS, Locator, Occurrence  # noqa: E402
from ragds_pipeline.spans.match_key import Level, end_of_character, key_of, match_key  # noqa: E402
from ragds_pipeline.spans.occurrences import OccurrenceIndex, find_everywhere  # noqa: E402
from ragds_pipeline_tests.shared_data import SHARED_DATA  # noqa: E402

TOTAL_BYTES, QUOTES, SEED = 70_000_000, 100_000, 20_261
VARIED_WORDS = 0.15
"""Share of the words of a made document that are replaced, so that its sentences are not copies of the real
ones."""

Documents = list[tuple[str, str]]
Quote = tuple[int, int, int, str]
"""Document, start and end in it, and the quote with other white space."""
Result = TypeVar("Result")


def main() -> None:
    if not SHARED_DATA.exists():
        print(f"skipped: real data absent: {SHARED_DATA}")
        return
    rng = random.Random(SEED)
    documents, note = corpus(rng)
    quotes = [quote_from(documents, rng.randrange(len(documents)), rng) for _ in range(QUOTES)]
    rows = [
        *key_rows(documents),
        *own_document_rows(documents, quotes, rng),
        *anywhere_rows(documents, quotes),
    ]
    report(rows, note)


def timed(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return the result, CPU seconds and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def corpus(rng: random.Random) -> tuple[Documents, str]:
    """Return 70 MB of documents: the real ones, then made ones, and a sentence that says how many of each."""
    documents = [
        (str(path.relative_to(SHARED_DATA)), normalise(path.read_text(encoding="utf-8")))
        for path in sorted(SHARED_DATA.rglob("*.md"))
    ]
    articles = json.loads((SHARED_DATA / "jsquad/valid-v1.3.json").read_text(encoding="utf-8"))["data"]
    contexts = [normalise(each["context"]) for article in articles for each in article["paragraphs"]]
    real = len(documents)
    english = [line.split(" ") for _, text in documents for line in text.split("\n") if line.strip()]
    makers = {
        "en": lambda: varied(english, " ", rng),
        "ja": lambda: varied([list(text) for text in contexts], "", rng),
        "it": lambda: italian(rng),
    }
    size = sum(len(text.encode()) for _, text in documents)
    while size < TOTAL_BYTES:
        language = rng.choices(["en", "ja", "it"], weights=[70, 15, 15])[0]
        text = makers[language]()
        documents.append((f"made/{language}/{len(documents)}.md", text))
        size += len(text.encode())
    average = sum(len(text) for _, text in documents) / len(documents)
    note = (
        f"{real:,} real documents and {len(documents) - real:,} made ones (70 % en, 15 % ja, 15 % it), "
        f"{size / 1e6:.1f} MB,\n{average:,.0f} characters each on average. Made documents are real paragraphs "
        f"(JSQuAD's for ja) in\nrandom order with {VARIED_WORDS:.0%} of the words (characters in ja) replaced "
        f"by others of the\nsame language; Italian is drawn from a list of words with Zipf's frequencies. "
        f"Seed {SEED}."
    )
    return documents, note


def varied(paragraphs: list[list[str]], blank: str, rng: random.Random) -> str:
    """Real paragraphs in random order, with words replaced by words of other paragraphs."""
    wanted, made, size = rng.randint(2_000, 16_000), [], 0
    while size < wanted:
        words = list(rng.choice(paragraphs))
        for at in rng.sample(range(len(words)), round(len(words) * VARIED_WORDS)):
            words[at] = rng.choice(rng.choice(paragraphs))
        made.append(blank.join(words))
        size += len(made[-1])
    return "\n".join(made)


_ITALIAN = (
    "di e il la che in un una per è del non con si da le della dei nel al i più alla come anche sono lo "
    "ha delle richiesta rimborso spese dipendente ufficio giorni ferie contratto responsabile "
    "approvazione viaggio modulo documento procedura entro termine caso lavoro azienda servizio cliente "
    "ordine fattura pagamento scadenza verifica controllo sicurezza accesso sistema utente dati copia "
    "archivio sede orario malattia permesso formazione corso valutazione obiettivo risultato progetto "
    "gruppo riunione verbale firma direttore personale sarà può deve possono essere fatto stato inviata "
    "compilato presentare ottenere rispettare"
)
ITALIAN = _ITALIAN.split()
_WEIGHTS = [1 / rank for rank in range(1, len(ITALIAN) + 1)]


def italian(rng: random.Random) -> str:
    sentences = (
        " ".join(rng.choices(ITALIAN, _WEIGHTS, k=rng.randint(8, 25))).capitalize() for _ in range(rng.randint(20, 140))
    )
    return ".\n".join(sentences)


def quote_from(documents: Documents, at: int, rng: random.Random) -> Quote:
    """A stretch of 20 to 200 characters, its white space altered: blanks doubled or turned into line
    breaks."""
    text = documents[at][1]
    while True:
        start = rng.randrange(max(1, len(text) - 20))
        end = end_of_character(text, min(len(text), start + rng.randint(20, 200)))
        content = text[start:end]
        # The rule of a table (-----) is no evidence, and stands in 80,000 places.
        if len(key_of(content)) >= MIN_KEY_CHARS and len(re.findall(r"\w", content)) > 2:
            break
    start += len(content) - len(content.lstrip())
    end -= len(content) - len(content.rstrip())
    words = text[start:end].split()
    if len(words) == 1:
        words = [words[0][: len(words[0]) // 2], words[0][len(words[0]) // 2 :]]
    return at, start, end, rng.choice(["\n", "  ", " \n"]).join(words)


def key_rows(documents: Documents) -> list[str]:
    rows = []
    for level in Level:
        match_key("", level)  # builds the tables
        for language in ("real", "made/en", "made/ja", "made/it"):
            texts = [
                text
                for path, text in documents
                if path.startswith(language) or (language == "real" and not path.startswith("made/"))
            ]
            size = sum(len(text.encode()) for text in texts) / 1e6
            _, cpu, wall = timed(partial(all_keys, texts, level))
            name = f"match key and map, {level}, {language}, {size:.0f} MB"
            rows.append(f"| {name} | {cpu:.2f} | {wall:.2f} | {size / cpu:.0f} MB/s |")
    return rows


def all_keys(texts: list[str], level: Level) -> None:
    for text in texts:
        match_key(text, level)


def own_document_rows(documents: Documents, quotes: list[Quote], rng: random.Random) -> list[str]:
    locators = [Locator(text) for _, text in documents]
    largest = max(range(len(documents)), key=lambda at: len(documents[at][1]))
    in_largest = [quote_from(documents, largest, rng) for _ in range(1_000)]
    rows = []
    for name, batch in (
        ("in their own documents, keys included", quotes),
        (f"in one document of {len(documents[largest][1]):,} characters", in_largest),
    ):
        found, cpu, wall = timed(partial(locate_all, locators, batch))
        placed = sum(
            any(each.start_char == start for each in places)
            for places, (_, start, _, _) in zip(found, batch, strict=True)
        )
        ambiguous = sum(len(each) > 1 for each in found)
        result = f"{placed:,} at their place, {ambiguous:,} ambiguous"
        rows.append(f"| {len(batch):,} quotes {name} | {cpu:.2f} | {wall:.2f} | {result} |")
    return rows


def locate_all(locators: list[Locator], quotes: list[Quote]) -> list[list[Occurrence]]:
    return [locators[at].locate(quote) for at, _, _, quote in quotes]


def anywhere_rows(documents: Documents, quotes: list[Quote]) -> list[str]:
    texts = [quote for *_, quote in quotes]
    index, cpu, wall = timed(lambda: OccurrenceIndex.build(documents))
    rows = [f"| index of everything | {cpu:.2f} | {wall:.2f} | |"]
    found, cpu_find, wall_find = timed(partial(index.find_many, texts))
    placed = sum(
        any(place.document_path == documents[at][0] and place.start_char == start for place in places)
        for places, (at, start, _, _) in zip(found, quotes, strict=True)
    )
    result = f"{placed:,} at their place, {sum(map(len, found)):,} places"
    rows.append(f"| {len(texts):,} quotes by the index | {cpu_find:.2f} | {wall_find:.2f} | {result} |")
    rows.append(f"| **index and quotes together** | **{cpu + cpu_find:.2f}** | {wall + wall_find:.2f} | |")
    del index
    default = occurrences.SCAN_AT_MOST
    for count, way in ((1, "scanned"), (1, "sorted"), (400, "scanned"), (800, "scanned"), (800, "sorted")):
        occurrences.SCAN_AT_MOST = count if way == "scanned" else 0
        some, cpu, wall = timed(partial(find_everywhere, texts[:count], documents))
        assert some == found[:count]
        rows.append(f"| `find_everywhere`, {count} quotes, {way} | {cpu:.2f} | {wall:.2f} | |")
    occurrences.SCAN_AT_MOST = default
    return rows


def report(rows: list[str], note: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    lines = [
        "# Match keys and the search for quotes",
        "",
        "`OPENBLAS_NUM_THREADS=1 python benchmarks/spans.py` on 2 cores (shared); one process, one thread.",
        note,
        "",
        "| what | CPU s | wall s | result |",
        "|---|---|---|---|",
        *rows,
        "",
        f"Peak memory of the whole run, with all texts, quotes and results in it: {peak:.1f} GB.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (ROOT / "benchmarks/results/spans.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
