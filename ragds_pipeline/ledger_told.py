"""The ledger for a terminal: sums by whatever one asks about, and batches that are still open. Nothing is changed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from decimal import Decimal

import pyarrow as pa

from ragds_pipeline.claude.batch_store import OpenBatch
from ragds_pipeline.claude.budget import dollars
from ragds_pipeline.claude.ledger import Ledger

KINDS = {
    "task": "task", "model": "model", "backend": "backend", "run": "run_id", "revision": "partition",
    "prompt": "prompt_version", "day": "created_at",
}  # fmt: skip
"""What entries can be summed by, and the column that tells it."""

_COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_HEADS = ("calls", "input", "output", "cache write", "cache read", "USD")


def sums_by(ledger: Ledger, kinds: Sequence[str]) -> str:
    """Return a table of the ledger's entries added up by ``kinds``, with a line for all of them."""
    found: dict[tuple[str, ...], list[Decimal]] = {}
    for batch in ledger.batches():
        _add(found, batch, kinds)
    rows = [(*names, *_shown(amounts)) for names, amounts in sorted(found.items())]
    whole = [sum(column, Decimal(0)) for column in zip(*found.values(), strict=True)] or [Decimal(0)] * len(_HEADS)
    total = ("all", *[""] * (len(kinds) - 1), *_shown(whole))
    return _table([(*kinds, *_HEADS), *rows, total], left=len(kinds))


def _add(found: dict[tuple[str, ...], list[Decimal]], batch: pa.RecordBatch, kinds: Sequence[str]) -> None:
    names = [
        [str(value)[:10] for value in batch.column(KINDS[kind]).to_pylist()]
        if kind == "day"
        else [value or "(none)" for value in batch.column(KINDS[kind]).to_pylist()]
        for kind in kinds
    ]
    amounts = zip(*(batch.column(name).to_pylist() for name in (*_COUNTED, "cost_usd")), strict=True)
    for key, row in zip(zip(*names, strict=True), amounts, strict=True):
        sums = found.setdefault(key, [Decimal(0)] * len(_HEADS))
        for at, amount in enumerate((1, *row)):
            sums[at] += amount


def _shown(amounts: Sequence[Decimal]) -> list[str]:
    *counts, usd = amounts
    return [*(f"{int(count):,}" for count in counts), f"{usd:,.6f}"]


def batches_told(batches: Sequence[OpenBatch]) -> str:
    """Return a table of open batches with their age, how many requests wait, and what caps count for these."""
    if not batches:
        return "No open batches."
    now = time.time()
    rows = [
        (
            batch.batch_id or batch.intent,
            "made" if batch.batch_id else "perhaps made",
            _age(now - batch.created_at),
            str(batch.requests),
            str(batch.unanswered),
            f"{dollars(batch.counted):.4f}",
            batch.server,
        )
        for batch in batches
    ]
    heads = ("batch", "state", "age", "requests", "unanswered", "counted USD", "server")
    end = "The next run that asks for them collects their results. Let go of one that cannot be reached any more with:"
    return f"{_table([heads, *rows], left=3)}\n\n{end}\n  ragds batches forget <batch> --yes"


def _age(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _table(rows: Iterable[Sequence[str]], left: int) -> str:
    """Return rows as aligned columns, the first ``left`` of them to the left and the others to the right."""
    listed = [list(row) for row in rows]
    widths = [max(len(row[at]) for row in listed) for at in range(len(listed[0]))]
    lines = [
        "  ".join(
            cell.ljust(w) if at < left else cell.rjust(w) for at, (cell, w) in enumerate(zip(r, widths, strict=True))
        )
        for r in listed
    ]
    return "\n".join(line.rstrip() for line in lines)
