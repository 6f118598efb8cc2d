"""``ragds.yaml`` and ``kb.yaml``: one validated settings model each. A bad configuration stops a run at once.

Every field carries its own docstring; ``docs/configuration.md`` is generated from them
(``python -m ragds_pipeline.config_reference``), so what is written here is what users read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pathspec
import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

SOURCE_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
"""What a source version may look like: it becomes a Dagster partition key and a folder name."""

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ConfigError(ValueError):
    """The configuration cannot be used; the message names the file, the field and what to do."""


def check_patterns(patterns: Iterable[str]) -> None:
    """Raise ValueError for a pattern (as in ``.gitignore``) that is none, or that could never match."""
    for pattern in patterns:
        try:
            usable = [one.include for one in pathspec.GitIgnoreSpec.from_lines([pattern]).patterns]
        except ValueError as error:
            raise ValueError(f"{pattern!r} is no pattern as in .gitignore") from error
        if len(usable) != 1 or usable[0] is None:
            raise ValueError(f"{pattern!r} can match no file; a name that begins with # is written '\\#...'")


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
    no_answer: int = Field(0, ge=0)
    """How many questions without an answer in the KB are wanted, besides ``questions``. They form a set of their own;
    with 0 none are asked for, and nothing of it costs anything. What is frozen already goes on being held against
    revisions."""

    @field_validator("documents")
    @classmethod
    def _patterns(cls, value: dict[str, float]) -> dict[str, float]:
        check_patterns(value)
        return value

    @field_validator("difficulty", "types", "languages")
    @classmethod
    def _some_share(cls, shares: dict[str, float], info: ValidationInfo) -> dict[str, float]:
        if not shares and info.field_name == "languages":
            return shares
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


class JudgeSettings(_Model):
    """Claude's filters, asked in this order: ambiguity, closed_book, support, class."""

    enabled: list[Literal["ambiguity", "closed_book", "support", "class"]] = []
    """Which judges are asked. Measure them first (`ragds probes`, the asset `judge_calibration`), then
    trust them."""
    votes: int = Field(3, ge=1, le=11)
    """How often a judge is asked about an item whose first vote would drop it. Odd. Unanimous votes decide, split ones
    go to people with both reasons."""
    vote_on: Literal["drops", "all"] = "drops"
    """``drops``: only items whose first vote would drop them are voted on. ``all``: every item gets all votes."""
    closed_book_attempts: int = Field(1, ge=1, le=9)
    """How often each model is asked to answer without the document; one correct answer drops the item."""
    closed_book_models: list[str] = []
    """Models that answer without the document; by default the judge's."""
    max_tokens: int = Field(4_000, ge=256)
    """Upper limit of a judge's reply in tokens, thinking included."""
    batch_above: int = Field(200, ge=0)
    """With the ``api`` backend, a filter that has to send more requests than this at once sends them as a message
    batch: half the price, most done within the hour. 0: never. With ``claude.base_url``, only where it is set here,
    because other servers often have no batches."""
    min_kappa: float = Field(0.6, ge=-1, le=1)
    """Below this agreement with the labels (Cohen's kappa) the check ``judges_agree`` warns. 0.6 is where Landis and
    Koch begin to call it substantial."""
    min_labels: int = Field(40, ge=1)
    """With fewer labels a judge's agreement says nothing, and the check says so."""

    @field_validator("votes")
    @classmethod
    def _odd(cls, votes: int) -> int:
        if votes % 2 == 0:
            raise ValueError("votes must be odd, so that a majority can be told")
        return votes


class FilterSettings(_Model):
    """The filters, cheapest first."""

    evidence: EvidenceSettings = EvidenceSettings()
    """What the code filter asks of evidence."""
    judges: JudgeSettings = JudgeSettings()
    """Claude's filters."""
    duplicate_score: float = Field(80.0, ge=50, le=100)
    """Questions at least this similar (RapidFuzz, 0 to 100) that differ in no number are near-duplicates."""
    answer_overlap: float = Field(0.8, gt=0, le=1)
    """Share of the answer's content words that may stand in the question before the answer counts as given away."""


class NoAnswerSettings(_Model):
    """Questions that the KB does not answer. How many are asked for is ``plan.no_answer``; with 0 all of this rests."""

    proposals: list[Literal["not_supported", "evidence_not_found"]] = ["not_supported"]
    """Drops of the main set, by reason, whose questions are proposed for this set: the evidence did not answer them,
    so perhaps nothing does. Each is asked of the KB like any other."""
    ask_all_up_to: int = Field(30, ge=1)
    """A question is asked of every document of a KB that has no more than so many."""
    documents_asked: int = Field(12, ge=1)
    """In a larger KB it is asked of so many documents: its own, and those with the passages that rank highest. How many
    of how many were asked stands on each item."""
    asked_first: int = Field(3, ge=1)
    """So many of these documents are asked first; a question that one of them answers is not asked of the others."""
    model: Literal["retriever", "judge"] = "retriever"
    """Whose model reads the documents (``claude.models``)."""
    request_max_chars: int = Field(60_000, ge=500)
    """Characters of a document in one request; a longer one is asked in several."""
    max_tokens: int = Field(4_000, ge=256)
    """Upper limit of such a reply in tokens, thinking included."""
    nearest: int = Field(3, ge=1, le=20)
    """Passages that the review sheet shows as the nearest ones. A confidential document among them is named."""
    top_up_rounds: int = Field(1, ge=0, le=10)
    """How often more such questions are asked for when fewer than planned are left."""
    refusals: dict[str, str] = {}
    """Reference answers by language (ISO 639-1), which replace those in ``ragds_pipeline/filters/refusals.py``."""

    @field_validator("refusals")
    @classmethod
    def _texts(cls, refusals: dict[str, str]) -> dict[str, str]:
        if bad := [code for code, text in refusals.items() if not re.fullmatch(r"[a-z]{2}", code) or not text.strip()]:
            raise ValueError(f"give a text for each ISO 639-1 code such as en, ja, it; not so: {', '.join(bad)}")
        return refusals


class ReviewSettings(_Model):
    """The sheets that go to people."""

    context_chars: int = Field(300, ge=0)
    """Characters of the document shown before and after the evidence in the sheet's last column."""
    reviewer: str = ""
    """Name written on imported decisions when the import names none."""
    audit_share: float = Field(0.1, ge=0, le=1)
    """Share of the candidates that a judge dropped which go on the sheet all the same, unmarked: the only way to learn
    how often a judge drops what people would keep. They never enter the golden set (docs/filters.md). 0: none."""
    audit_seed: int = 20261001
    """Seed of that choice; it depends on nothing but this and the candidate."""


class GoldenSettings(_Model):
    """Freezing."""

    held_out_share: float = Field(0.3, ge=0, lt=1)
    """Share of the questions that are held out. Questions that share evidence are never on two sides."""
    split_seed: int = 20261001
    """Seed of the split of new questions; those already frozen keep their side whatever it is."""


class WatchSettings(_Model):
    """Noticing by itself that documents changed. Off unless switched on, because a run asks Claude and costs money."""

    enabled: bool = False
    """True: the sensor ``kb_revision_sensor`` runs whenever the Dagster daemon does (``ragds ui``), and starts
    ``revision_job`` for each new revision. False: it is there, stopped, and can be started in the UI."""
    every_s: int = Field(30, ge=5)
    """Seconds between two looks at the KB folder."""
    quiet_s: float = Field(120.0, ge=0)
    """How long documents, their folders and ``kb.yaml`` must not have changed before what they say is a revision, so
    that a half-finished sync is none."""
    max_attempts: int = Field(3, ge=1, le=20)
    """How often the job is started for a revision, at most, when it fails. After that it waits for a person."""
    retry_after_s: float = Field(300.0, ge=0)
    """Seconds between a failed run and the next attempt."""
    gone_share: float = Field(0.5, gt=0, le=1)
    """Where more than this share of the documents of the current revision is gone, nothing is started until the folder
    has been quiet for ``gone_quiet_s``, or a person starts the job: it may be a mount or a sync that failed."""
    gone_quiet_s: float = Field(86_400.0, ge=0)
    """See ``gone_share``."""
    cron: str = "0 5 * * *"
    """When the schedule ``kb_revision_schedule`` looks at the folder, as a cron expression."""
    timezone: str = "UTC"
    """Time zone of ``cron``, such as ``Europe/Rome``."""
    schedule_enabled: bool = False
    """True: the schedule runs whenever the daemon does. It is for those who want runs at set times only, and needs no
    ``enabled``."""

    @field_validator("cron")
    @classmethod
    def _cron(cls, value: str) -> str:
        if not re.fullmatch(r"@(hourly|daily|weekly|monthly|yearly)|\s*(\S+\s+){4}\S+\s*", value):
            raise ValueError("use a cron expression of five fields, such as '0 5 * * *'")
        return value

    @field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("no such time zone; use a name such as Europe/Rome") from error
        return value


class ChecksSettings(_Model):
    """``ragds checks``, which CI runs."""

    stale_share: float = Field(0.1, ge=0, le=1)
    """A larger share of golden items with evidence that changed, moved to another document or is gone gives a
    warning (``stale_share``): the set needs a re-validation."""


class Price(_Model):
    """Price of one model in USD per million tokens."""

    input: Decimal
    """USD per million input tokens; a cache write costs 1.25 times (5 minutes) or twice (1 hour) as much, and a batch
    half of everything."""
    output: Decimal
    """USD per million output tokens, thinking included."""
    cache_read: Decimal | None = None
    """USD per million input tokens read from the prompt cache; a tenth of ``input`` where not given."""


Effort = Literal["low", "medium", "high", "xhigh", "max"]
Thinking = Literal["adaptive", "between_tools", "disabled"]
Task = Literal["generator", "judge", "agent", "retriever", "aggregator"]
TASKS: tuple[Task, ...] = get_args(Task)


@dataclass(frozen=True, slots=True)
class TaskModel:
    """The model of one task, with what its requests say about effort and thinking (None: the model's own default)."""

    model: str
    effort: Effort | None
    thinking: Thinking | None


class ModelSettings(_Model):
    """Which model does what. Each task takes a model id, or a mapping such as
    ``judge: {model: claude-sonnet-5-5, effort: low, thinking: between_tools}``."""

    generator: str = "claude-opus-5-5"
    """Writes candidates."""
    judge: str = "claude-sonnet-5-5"
    """Judges them; another model than the generator by default."""
    agent: str = "claude-opus-5-5"
    """Explores the KB for multi-hop questions."""
    retriever: str = "claude-haiku-5-5"
    """Reads whole documents for passages on a wide question; asked most often, so the cheapest by default."""
    aggregator: str = "claude-opus-5-5"
    """Merges what the retrievers found into an answer."""
    effort: dict[Task, Effort] = {}
    """Effort by task; what ``effort`` in a task's mapping sets. Other tasks follow ``claude.effort``."""
    thinking: dict[Task, Thinking] = {}
    """Thinking by task; what ``thinking`` in a task's mapping sets. The model's own default where not given."""
    same_judge: bool = False
    """True: the judge may be the generator's model without a warning. Models favour what they wrote themselves."""

    @model_validator(mode="before")
    @classmethod
    def _mappings(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        out = dict(given)
        for name in ("effort", "thinking"):
            if isinstance(out.get(name, {}), dict):  # anything else is for the field's own check to refuse
                out[name] = dict(out.get(name, {}))
        for task in TASKS:
            if not isinstance(out.get(task), dict):
                continue
            options = dict(out.pop(task))
            for name in ("effort", "thinking"):
                if (value := options.pop(name, None)) is not None and isinstance(out[name], dict):
                    out[name][task] = value
            if "model" in options:
                out[task] = options.pop("model")
            if options:
                raise ValueError(f"{task}: unknown {', '.join(map(str, options))}; use model, effort and thinking")
        return out

    @property
    def ids(self) -> tuple[str, ...]:
        """The models of all tasks, each once."""
        return tuple(dict.fromkeys(getattr(self, task) for task in TASKS))


class ClaudeSettings(_Model):
    """How models are reached. Keys come from the environment (``ANTHROPIC_API_KEY``) and from nowhere else."""

    backend: Literal["api", "batch", "file"] = "api"
    """``api``: direct calls. ``batch``: Message Batches, at half the price, most done within the hour. ``file``:
    replies are read from ``recorded``, and requests that have none are written out as Message-Batches JSONL to be
    answered elsewhere."""
    ledger: str = "sqlite:///data/ledger.sqlite"
    """SQLAlchemy URL of the ledger of replies. A relative SQLite path is relative to this file."""
    recorded: Path = Path("data/recorded/replies")
    """Folder with replies in Message-Batches JSONL (``file`` backend), relative to this file."""
    outbox: Path = Path("data/outbox")
    """Folder in which requests without a reply are written (``file`` backend), relative to this file."""
    provider: Literal["anthropic", "bedrock", "vertex"] = "anthropic"
    """Whose client and credentials: Anthropic's (``ANTHROPIC_API_KEY``), Amazon Bedrock's (AWS credentials and region;
    ``pip install 'ragds[bedrock]'``) or Vertex AI's (Google credentials, ``CLOUD_ML_REGION`` and
    ``ANTHROPIC_VERTEX_PROJECT_ID``; ``pip install 'ragds[vertex]'``). ``models`` then holds that provider's ids."""
    base_url: str | None = None
    """Another server that speaks the Messages API: a gateway, or a local model."""
    models: ModelSettings = ModelSettings()
    """Which model does what."""
    effort: Effort | None = None
    """How hard the model thinks (``output_config.effort``); the model's own default where not given."""
    structured_outputs: bool = True
    """True: replies follow a JSON schema that the API enforces. False: JSON is asked for in the prompt and read
    tolerantly, for servers without structured outputs or to treat both sides of a test alike."""
    concurrency: int = Field(8, ge=1, le=256)
    """Calls under way at once (``api`` backend)."""
    requests_per_minute: float | None = Field(None, gt=0)
    """Calls begun in a minute, at most; no limit where not given. A limit that the server reports holds in any case
    (``api`` backend)."""
    input_tokens_per_minute: float | None = Field(None, gt=0)
    """Input tokens sent in a minute, at most, as estimated before and corrected after each call (``api`` backend)."""
    output_tokens_per_minute: float | None = Field(None, gt=0)
    """Output tokens asked for in a minute, at most, judged by the length of the replies so far (``api`` backend)."""
    max_retries: int = Field(4, ge=0, le=20)
    """How often a call is tried again that failed in passing. A rate limit does not count: it is waited out, as long
    as ``timeout_s`` allows."""
    timeout_s: float = Field(600.0, gt=0)
    """Seconds after which one call is given up, all its attempts and the waits between them included."""
    budget_usd: Decimal = Field(Decimal(5), gt=0)
    """Most a run may spend, all its processes together: what is spent, in flight, and possibly paid for replies that
    were lost never exceeds it."""
    partition_budget_usd: Decimal | None = Field(None, gt=0)
    """Most that all runs for one revision of the KB may spend together; only ``budget_usd`` holds where not given."""
    prices: dict[str, Price] = {}
    """Prices by model that add to or replace the dated table in ``ragds_pipeline/claude/pricing.py``."""
    count_tokens: bool = False
    """True: an estimate counts the tokens of a sample of the requests with the API (free of charge, needs a key) and
    scales the rest by it. False: all are estimated from their lengths."""
    check_models: bool = True
    """Ask the API at the start of a run whether the configured models exist and can do what is configured (``api`` and
    ``batch`` backends)."""
    caching: bool = True
    """Mark what several requests share (instructions, document) for the prompt cache. Replies and keys are the same
    without it; only the cost differs."""
    batch_max_requests: int = Field(10_000, ge=1, le=100_000)
    """Requests in one batch, at most (``batch`` backend)."""
    batch_max_bytes: int = Field(100_000_000, ge=1_000, le=256_000_000)
    """Bytes of one batch, at most (``batch`` backend)."""
    batch_poll_s: float = Field(15.0, gt=0)
    """Seconds before a batch is first asked whether it has ended; each wait is a quarter longer than the one before, up
    to ``batch_poll_max_s`` (``batch`` backend)."""
    batch_poll_max_s: float = Field(300.0, gt=0)
    """The longest wait between two such questions (``batch`` backend)."""
    batch_settle_s: float = Field(60.0, ge=0)
    """How long a batch may take to appear in the list after a creation whose answer was lost. Only then is another
    made (``batch`` backend)."""
    batch_attempts: int = Field(3, ge=1, le=10)
    """How often a request is put into a batch in one run, counting those in which it expired or met an error of the
    server; such items are not paid (``batch`` backend)."""
    batch_check_first: bool = False
    """True: the first request of a run is counted with ``count_tokens`` before a batch is made, because a batch accepts
    requests unread and a mistake would show only when it has ended (``batch`` backend)."""

    def task(self, name: Task) -> TaskModel:
        """Return the model of a task with its effort and thinking."""
        models = self.models
        return TaskModel(getattr(models, name), models.effort.get(name, self.effort), models.thinking.get(name))


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
    no_answer: NoAnswerSettings = NoAnswerSettings()
    """Questions that the KB does not answer."""
    review: ReviewSettings = ReviewSettings()
    """The sheets that go to people."""
    golden: GoldenSettings = GoldenSettings()
    """Freezing."""
    watch: WatchSettings = WatchSettings()
    """Noticing by itself that documents changed. Off unless switched on, because a run asks Claude and costs money."""
    checks: ChecksSettings = ChecksSettings()
    """``ragds checks``, which CI runs."""
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
    """Patterns of documents that must never be sent to a model. A document with the same text as one of them is
    confidential too. A pattern that matches no file stops the run."""
    encodings: dict[str, str] = {}
    """Encodings by pattern (``"legacy/**": cp932``) where detection would be wrong."""
    document_languages: dict[str, str] = {}
    """Languages by pattern, where a document's front matter does not say ``lang`` and detection would be wrong."""

    @field_validator("include", "exclude", "confidential", "encodings", "document_languages")
    @classmethod
    def _patterns(cls, value: list[str] | dict[str, str]) -> list[str] | dict[str, str]:
        check_patterns(value)
        return value

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
        for name in ("kb.yml", "KB.yaml", "kb.json"):
            if (kb_dir / name).exists():
                # Passing it over would lift `confidential` without a word.
                raise ConfigError(f"{kb_dir / name} is not read: rename it to kb.yaml")
        return KbManifest()
    try:
        return KbManifest.model_validate(_load_yaml(path))
    except ValidationError as error:
        raise _explain(path, error) from error
