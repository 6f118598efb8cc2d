"""What the reference answer of a no_answer question says, by language: that the documents do not answer it.

``no_answer.refusals`` in ragds.yaml replaces or adds to these. A language without a text gets the English one.
"""

from __future__ import annotations

from collections.abc import Mapping

FALLBACK = "en"

REFUSALS: Mapping[str, str] = {
    "ar": "لا تحتوي الوثائق المتاحة على إجابة عن هذا السؤال.",
    "bg": "Наличните документи не съдържат отговор на този въпрос.",
    "ca": "Els documents disponibles no contenen la resposta a aquesta pregunta.",
    "cs": "Dostupné dokumenty na tuto otázku neodpovídají.",
    "da": "De tilgængelige dokumenter besvarer ikke dette spørgsmål.",
    "de": "Die vorliegenden Dokumente beantworten diese Frage nicht.",
    "el": "Τα διαθέσιμα έγγραφα δεν απαντούν σε αυτή την ερώτηση.",
    "en": "The available documents do not answer this question.",
    "es": "Los documentos disponibles no responden a esta pregunta.",
    "et": "Olemasolevad dokumendid ei vasta sellele küsimusele.",
    "fi": "Käytettävissä olevat asiakirjat eivät vastaa tähän kysymykseen.",
    "fr": "Les documents disponibles ne répondent pas à cette question.",
    "he": "המסמכים הזמינים אינם עונים על שאלה זו.",
    "hi": "उपलब्ध दस्तावेज़ों में इस प्रश्न का उत्तर नहीं है।",
    "hr": "Dostupni dokumenti ne odgovaraju na ovo pitanje.",
    "hu": "A rendelkezésre álló dokumentumok nem adnak választ erre a kérdésre.",
    "id": "Dokumen yang tersedia tidak menjawab pertanyaan ini.",
    "it": "I documenti disponibili non rispondono a questa domanda.",
    "ja": "利用できる文書には、この質問への回答は記載されていません。",
    "ko": "제공된 문서에는 이 질문에 대한 답이 없습니다.",
    "nl": "De beschikbare documenten geven geen antwoord op deze vraag.",
    "no": "De tilgjengelige dokumentene besvarer ikke dette spørsmålet.",
    "pl": "Dostępne dokumenty nie zawierają odpowiedzi na to pytanie.",
    "pt": "Os documentos disponíveis não respondem a esta pergunta.",
    "ro": "Documentele disponibile nu răspund la această întrebare.",
    "ru": "В доступных документах нет ответа на этот вопрос.",
    "sk": "Dostupné dokumenty na túto otázku neodpovedajú.",
    "sl": "Razpoložljivi dokumenti ne odgovarjajo na to vprašanje.",
    "sv": "De tillgängliga dokumenten besvarar inte denna fråga.",
    "th": "เอกสารที่มีอยู่ไม่มีคำตอบสำหรับคำถามนี้",
    "tr": "Mevcut belgeler bu soruyu yanıtlamıyor.",
    "uk": "У доступних документах немає відповіді на це запитання.",
    "vi": "Các tài liệu hiện có không trả lời câu hỏi này.",
    "zh": "现有文档中没有该问题的答案。",
}


def refusal(language: str, own: Mapping[str, str]) -> str:
    """Return the refusal in ``language``; ``own`` are the project's texts, which come first."""
    texts = {**REFUSALS, **own}
    return texts.get(language, texts[FALLBACK])


def has_refusal(language: str, own: Mapping[str, str]) -> bool:
    """Tell whether there is a refusal in ``language``, or the English one stands in."""
    return language in own or language in REFUSALS
