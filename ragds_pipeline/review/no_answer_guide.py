"""What the second worksheet of the no_answer sheet says, in English, Japanese and Italian."""

from __future__ import annotations

GUIDE = (
    "How to review questions without an answer",
    "Every row is a question that the documents should NOT answer; the answer is a refusal. Write y (keep) or n (drop) "
    "into keep. To correct, edit question or answer and write y; a changed question is asked of the documents again. "
    "Leave keep empty where you cannot decide yet.",
    "1. Is it a question someone in the job would ask, and clear to somebody who has not read the documents?",
    "2. Is it true that no document answers it? If one does, write n and say in note which. Evidence shows what comes "
    "nearest: it does not answer, or should not.",
    "3. Is a refusal the right answer, rather than a correction of something false in the question?",
    "The context begins with LOOK where a document says a part, or a confidential one comes near.",
    "",
    "答えのない質問のレビュー手順",
    "各行は、文書に答えがない(はずの)質問で、回答は「答えられない」という文です。keep 列に y(採用)または n(不採用)を"
    "入力します。直すときは question・answer を書き換えて y とします(質問を直すと、もう一度全文書に照会します)。"
    "決められない行は空欄のまま。",
    "1. 実際にその仕事をする人が尋ねそうな質問か。文書を読んでいない人にも意味が一つに決まるか。",
    "2. 本当にどの文書にも答えがないか。あれば n とし、note にどの文書かを書く。evidence 列は最も近い箇所で、"
    "答えではない。",
    "3. 回答として「答えられない」が適切か(質問の前提が誤っている場合を除く)。",
    "context 列が LOOK で始まる行は、一部を答える文書や、近い機密文書があるもの。",
    "",
    "Come rivedere le domande senza risposta",
    "Ogni riga è una domanda a cui i documenti NON dovrebbero rispondere; la risposta è un rifiuto. In keep scrivere y "
    "(tenere) o n (scartare). Per correggere, modificare question o answer e scrivere y; una domanda modificata viene "
    "posta di nuovo ai documenti. Se non si può ancora decidere, lasciare keep vuoto.",
    "1. È una domanda che farebbe davvero chi svolge questo lavoro, e chiara per chi non ha letto i documenti?",
    "2. È vero che nessun documento risponde? Se uno risponde, scrivere n e in note quale. Evidence mostra i passi più "
    "vicini: non rispondono, o non dovrebbero.",
    "3. Un rifiuto è la risposta giusta, invece di correggere qualcosa di falso nella domanda?",
    "Il context comincia con LOOK se un documento risponde in parte, o se uno riservato è vicino.",
)
