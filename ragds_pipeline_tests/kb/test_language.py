"""A document's language: one of the KB's, or ``und`` rather than a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragds_pipeline.kb.language import detect_language
from ragds_pipeline_tests.kb.reading import folder, read
from ragds_pipeline_tests.projects import REPOSITORY
from ragds_pipeline_tests.shared_data import SHARED_DATA

ENGLISH = "The employee files the claim within thirty days of the receipt."
ITALIAN = "Il dipendente presenta la richiesta entro trenta giorni dalla ricevuta."
GERMAN = "Der Mitarbeiter reicht den Antrag innerhalb von dreißig Tagen nach dem Beleg ein."
JAPANESE = "従業員は領収書の日付から３０日以内に申請してください。Pontoon を使います。"
KANJI = "経費精算規程 第一章 総則 申請書 承認 領収書 交通費 宿泊費 部長決裁 Pontoon"
CHINESE = "员工应当在收据日期起三十天内提交申请，这是公司的规定。"
TRADITIONAL = "員工應當在收據日期起三十天內提交申請，這是我們公司的規定，請您遵守。"
RUSSIAN = "Сотрудник подаёт заявление в течение тридцати дней."


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        (ENGLISH, ["en", "ja", "it"], "en"),
        (ITALIAN, ["en", "ja", "it"], "it"),
        (JAPANESE, ["en", "ja", "it"], "ja"),
        (ENGLISH, ["en"], "en"),
        (JAPANESE, ["en"], "und"),
        (JAPANESE, ["en", "it"], "und"),
        (JAPANESE, ["zh", "en"], "und"),
        ("規程集の目次", ["en"], "und"),
        ("規程集の目次", ["ja", "en"], "ja"),
        (GERMAN, ["en", "it"], "und"),
        (GERMAN, ["en"], "und"),
        (GERMAN, ["ja"], "und"),
        (ENGLISH, ["it"], "und"),
        (RUSSIAN, ["en", "it"], "und"),
        (KANJI, ["ja", "en"], "ja"),
        (KANJI, ["en"], "und"),
        (KANJI, ["zh", "en"], "zh"),
        (CHINESE, ["ja", "en"], "und"),
        (TRADITIONAL, ["ja", "en"], "und"),
        (CHINESE, ["ja", "zh"], "zh"),
        (TRADITIONAL, ["ja", "zh"], "zh"),
        (CHINESE, ["zh", "en"], "zh"),
        (CHINESE, ["en"], "und"),
        (f"{ENGLISH} Ask 田中様 about it.", ["ja", "en"], "en"),
        ("Kubernetes nginx ingress TLS certificate", ["en"], "en"),
        ("Captain Nemo, Velmoor Hydrometrics, Desk 12", ["en", "it"], "en"),
        ("123 456", ["en", "it"], "und"),
        ("123 456", ["en"], "en"),
        ("אַ יידיש טעקסט", ["yi"], "yi"),  # unknown to the model, and all that is left
    ],
)
def test_languages(text: str, languages: list[str], expected: str) -> None:
    assert detect_language(text, languages) == expected


@pytest.mark.parametrize(
    "kb", [REPOSITORY / "kb", REPOSITORY / "examples" / "kb-next", SHARED_DATA / "18f-handbook" / "rev-2023-12-01"]
)
def test_no_document_of_real_knowledge_bases_is_in_an_unknown_language(kb: Path, tmp_path: Path) -> None:
    if not kb.exists():
        pytest.skip(f"{kb} is not here")
    _, documents, _ = read(kb, tmp_path / "out")
    assert documents and folder(kb, tmp_path / "out").manifest.languages
    expected = {path: {"ja": "ja", "it": "it"}.get(path.split("/")[0], "en") for path in documents}
    assert {path: document.language for path, document in documents.items()} == expected
