"""``ragds.yaml`` and ``kb.yaml``: one validated settings model each. A bad configuration stops a run at once.

Every field carries its own docstring; ``docs/configuration.md`` is generated from them
(``python -m ragds_pipeline.config_reference``), so what is written here is what users read.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

SOURCE_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
"""What a source version may look like: it becomes a Dagster partition key and a folder name."""

Share = Annotated[float, Field(ge=0)]


class ConfigError(ValueError):
    """The configuration cannot be used; the message names the file, the field and what to do."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class PassageSettings(_Model):
    """How documents are cut into passages."""

    target_chars: int = Field(1200, ge=100)
    """Size in characters that a passage aims at."""
    max_chars: int = Field(2400, ge=200)
    """Size in characters that a passage exceeds only for a single table row or line of code that is longer."""

    @model_validator(mode="after")
    def _ordered(self) -> PassageSettings:
        if self.target_chars > self.max_chars:
            raise ValueError("passages.target_chars is larger than passages.max_chars")
        return self


class KbSettings(_Model):
    """Where the documents are and how they are read."""

    path: Path = Path("kb")
    """Folder of the knowledge base, relative to this file. It holds ``kb.yaml`` and the documents."""
    max_file_bytes: int = Field(20_000_000, ge=1)
    """Files above this size are skipped and listed in ``kb_issues``."""
    passages: PassageSettings = PassageSettings()
    """How documents are cut into passages."""


class PlanSettings(_Model):
    """How many questions of what kind are asked for. Shares are relative weights; they need not add up to 1."""

    questions: int = Field(40, ge=1)
    """How many questions the golden set should hold. Exactly this many are planned."""
    difficulty: dict[Literal["easy", "medium", "hard"], Share] = {"easy": 1.0}
    """Shares by difficulty. Only ``easy`` can be generated so far; what is planned of the others is reported
    as missing (``no_generator``)."""
    types: dict[str, Share] = {"fact": 0.45, "procedure": 0.25, "condition": 0.2, "comparison": 0.1}
    """Shares by question type. A model is asked for these types and told what they mean (``type_notes``)."""
    type_notes: dict[str, str] = {
        "fact": "one fact, amount, deadline, name or responsibility",
        "procedure": "how something is done: steps, forms, approvals, their order",
        "condition": "when a rule applies, an exception, a limit, what happens otherwise",
        "comparison": "how two named cases that the document treats differently differ",
    }
    """What each type means, as told to the model."""
    languages: dict[str, Share] = {}
    """Shares by language of the document. Empty: by the amount of text in each language."""
    documents: dict[str, Share] = {}
    """Weights by document, as glob patterns (``"hr/**": 2``, ``"drafts.md": 0``); the first that matches counts,
    others weigh 1. The weight multiplies the document's size."""
    min_document_chars: int = Field(200, ge=0)
    """Documents with less text are asked nothing."""
    chars_per_question: int = Field(400, ge=1)
    """A document is asked for at most one question for so many characters, so that a short one is not squeezed."""
    top_up_rounds: int = Field(2, ge=0, le=10)
    """How often more questions are asked for when the filters leave fewer than planned."""

    @field_validator("difficulty", "types")
    @classmethod
    def _some_share(cls, shares: dict[str, float]) -> dict[str, float]:
        if not sum(shares.values()) > 0:
            raise ValueError("at least one share must be above 0")
        return shares


class CandidateSettings(_Model):
    """How questions are asked for."""

    unit: Literal["document", "passage"] = "document"
    """What one request shows: as much of a document as fits ``request_max_chars``, or one passage."""
    request_max_chars: int = Field(24_000, ge=500)
    """Characters of document text in one request; longer documents are shown in several requests."""
    questions_per_request: int = Field(6, ge=1, le=50)
    """At most so many questions are asked for in one request."""
    evidence_form: Literal["sentences", "quotes"] = "sentences"
    """``sentences``: the text is shown as numbered sentences and the model names their numbers, so that evidence is
    verbatim by construction. ``quotes``: the model copies the evidence, and code looks for it."""
    max_tokens: int = Field(12_000, ge=256)
    """Upper limit of a reply in tokens, thinking included."""


class EvidenceSettings(_Model):
    """What the code filter asks of evidence."""

    min_key_chars: int = Field(8, ge=8)
    """Evidence with fewer characters, white space not counted, is dropped (``evidence_too_short``)."""
    max_chars: int = Field(1500, ge=50)
    """A longer single span is dropped (``evidence_too_long``)."""
    max_spans: int = Field(8, ge=1)
    """An easy item with more spans is dropped (``too_many_spans``)."""
    max_occurrences: int = Field(20, ge=1)
    """Evidence that stands in more places proves nothing about any of them and is dropped
    (``evidence_everywhere``)."""


class FilterSettings(_Model):
    """The filters, cheapest first."""

    evidence: EvidenceSettings = EvidenceSettings()
    """What the code filter asks of evidence."""
    duplicate_score: float = Field(80.0, ge=50, le=100)
    """Questions at least this similar (RapidFuzz, 0 to 100) that differ in no number are near-duplicates."""
    answer_overlap: float = Field(0.8, gt=0, le=1)
    """Share of the answer's content words that may stand in the question before the answer counts as given away."""


class ReviewSettings(_Model):
    """The sheets that go to people."""

    context_chars: int = Field(300, ge=0)
    """Characters of the document shown before and after the evidence in the sheet's last column."""
    reviewer: str = ""
    """Name written on imported decisions when the import names none."""


class GoldenSettings(_Model):
    """Freezing."""

    held_out_share: float = Field(0.3, ge=0, lt=1)
    """Share of the questions that are held out. Questions that share evidence are never on two sides."""
    split_seed: int = 20261001
    """Seed of the split of new questions; those already frozen keep their side whatever it is."""


class Price(_Model):
    """Price of one model in USD per million tokens."""

    input: Decimal
    """USD per million input tokens."""
    output: Decimal
    """USD per million output tokens, thinking included."""
    cache_read: Decimal | None = None
    """USD per million input tokens read from the prompt cache; a tenth of ``input`` where not given."""


class ModelSettings(_Model):
    """Which model does what."""

    generator: str = "claude-opus-5-5"
    """Writes candidates."""
    judge: str = "claude-sonnet-5-5"
    """Judges them; another model than the generator by default."""


class ClaudeSettings(_Model):
    """How models are reached. Keys come from the environment (``ANTHROPIC_API_KEY``) and from nowhere else."""

    backend: Literal["api", "file"] = "api"
    """``api``: direct calls. ``file``: replies are read from ``recorded``, and requests that have none are written
    out as Message-Batches JSONL to be answered elsewhere."""
    ledger: str = "sqlite:///data/ledger.sqlite"
    """SQLAlchemy URL of the ledger of replies. A relative SQLite path is relative to this file."""
    recorded: Path = Path("data/recorded/replies")
    """Folder with replies in Message-Batches JSONL (``file`` backend), relative to this file."""
    outbox: Path = Path("data/outbox")
    """Folder in which requests without a reply are written (``file`` backend), relative to this file."""
    base_url: str | None = None
    """Another server that speaks the Messages API."""
    models: ModelSettings = ModelSettings()
    """Which model does what."""
    effort: Literal["low", "medium", "high"] | None = None
    """How hard the model thinks (``output_config.effort``); the model's own default where not given."""
    structured_outputs: bool = True
    """True: replies follow a JSON schema that the API enforces. False: JSON is asked for in the prompt and read
    tolerantly, for servers without structured outputs or to treat both sides of a test alike."""
    concurrency: int = Field(8, ge=1, le=256)
    """Calls under way at once (``api`` backend)."""
    max_retries: int = Field(4, ge=0, le=20)
    """How often the SDK tries a call again that failed in passing (``api`` backend)."""
    timeout_s: float = Field(600.0, gt=0)
    """Seconds after which one call is given up (``api`` backend)."""
    budget_usd: Decimal = Field(Decimal(5), gt=0)
    """Most a run may spend: what is spent and what is in flight never exceed it."""
    prices: dict[str, Price] = {}
    """Prices by model that add to or replace the dated table in ``ragds_pipeline/claude/pricing.py``."""


class Settings(_Model):
    """``ragds.yaml``: everything a project can set. All paths are relative to the file."""

    data: Path = Path("data")
    """Folder for everything the pipeline writes."""
    kb: KbSettings = KbSettings()
    """Where the documents are and how they are read."""
    plan: PlanSettings = PlanSettings()
    """How many questions of what kind are asked for."""
    candidates: CandidateSettings = CandidateSettings()
    """How questions are asked for."""
    filters: FilterSettings = FilterSettings()
    """The filters, cheapest first."""
    review: ReviewSettings = ReviewSettings()
    """The sheets that go to people."""
    golden: GoldenSettings = GoldenSettings()
    """Freezing."""
    claude: ClaudeSettings = ClaudeSettings()
    """How models are reached."""
    root: Path = Field(Path(), exclude=True)
    """Set by the program: the folder that holds this file."""

    def path(self, relative: Path | str) -> Path:
        """Return ``relative`` as an absolute path below the project's root (an absolute one as it is)."""
        return (self.root / relative).resolve()

    @property
    def data_dir(self) -> Path:
        """Absolute path of the data folder."""
        return self.path(self.data)

    @property
    def kb_dir(self) -> Path:
        """Absolute path of the knowledge base."""
        return self.path(self.kb.path)


class KbManifest(_Model):
    """``kb.yaml`` in the knowledge base's own folder."""

    name: str = "knowledge base"
    """Name of the knowledge base, shown in reports."""
    source_version: str | None = None
    """Version of the whole; without it a version is derived from the content (``rev-`` and 12 hex digits)."""
    languages: list[str] = ["en"]
    """ISO 639-1 codes of the languages that occur."""
    include: list[str] = [f"**/*.{ext}" for ext in ["md", "markdown", "txt", "pdf", "docx", "pptx", "xlsx", "html"]]
    """Patterns (as in ``.gitignore``) of the files that are documents."""
    exclude: list[str] = []
    """Patterns of files that are none, stronger than ``include``."""
    confidential: list[str] = []
    """Patterns of documents that must never be sent to a model."""
    encodings: dict[str, str] = {}
    """Encodings by pattern (``"legacy/**": cp932``) where detection would be wrong."""
    document_languages: dict[str, str] = {}
    """Languages by pattern, where a document's front matter does not say ``lang`` and detection would be wrong."""

    @field_validator("source_version", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        # An unquoted 2026-10-01 is a date to YAML; people write it without quotes all the time.
        return value if value is None or isinstance(value, str) else str(value)

    @field_validator("source_version")
    @classmethod
    def _usable_as_key(cls, value: str | None) -> str | None:
        if value is not None and not SOURCE_VERSION.fullmatch(value):
            raise ValueError("use letters, digits and . _ + - only (it names a partition and a folder), at most 80")
        return value

    @field_validator("languages")
    @classmethod
    def _codes(cls, value: list[str]) -> list[str]:
        bad = [code for code in value if not re.fullmatch(r"[a-z]{2}", code)]
        if bad or not value:
            raise ValueError(f"use ISO 639-1 codes such as en, ja, it; got {value}")
        return value


def _load_yaml(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected a mapping of settings, found {type(content).__name__}")
    return content


def _explain(path: Path, error: ValidationError) -> ConfigError:
    lines = [f"{path}: {error.error_count()} setting(s) cannot be used:"]
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"]) or "(whole file)"
        lines.append(f"  {where}: {item['msg']} (got {item['input']!r})"[:300])
    return ConfigError("\n".join(lines))


def load_settings(path: Path) -> Settings:
    """Read ``ragds.yaml`` at ``path``; raise ConfigError with every field that is wrong."""
    content = _load_yaml(path)
    if "root" in content:
        raise ConfigError(f"{path}: root is not a setting; it is the folder that holds the file")
    try:
        return Settings.model_validate({**content, "root": path.resolve().parent})
    except ValidationError as error:
        raise _explain(path, error) from error


def load_kb_manifest(kb_dir: Path) -> KbManifest:
    """Read ``kb.yaml`` in ``kb_dir`` (all defaults where there is none); raise ConfigError if it is wrong."""
    path = kb_dir / "kb.yaml"
    if not path.exists():
        return KbManifest()
    try:
        return KbManifest.model_validate(_load_yaml(path))
    except ValidationError as error:
        raise _explain(path, error) from error
