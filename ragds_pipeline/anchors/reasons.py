"""Why a span does not carry over by itself: every reason an anchor event can name."""

from __future__ import annotations

OK = "ok"
MEANING = "meaning_changed"
READING = "reading_changed"
LAYOUT = "layout_changed"
LINK = "link_changed"
SENTENCE = "sentence_changed"
LEAD_IN = "lead_in_changed"
HEADING = "heading_changed"
STATE = "state_changed"
AMBIGUOUS = "ambiguous"
COPY = "copy_gone"
SHORT = "short_and_elsewhere"
EDITED = "edited"
LOST = "lost"

REASONS = {
    MEANING: "a number, a date, a unit, a name, a negation or the like changed inside the span",
    READING: "characters changed whose meaning code cannot judge (case, superscripts, fractions, gaps between words)",
    LAYOUT: "the indentation of code or the rows of a table changed",
    LINK: "a link in the span now leads elsewhere, outside the documents",
    SENTENCE: "the sentence or table row that holds the span changed outside the span",
    LEAD_IN: "the words that lead in to the span changed: the line above its list, its table's header",
    HEADING: "a heading above the span changed in a number, a negation or another word that matters",
    STATE: "the span was commented out, struck out, or moved into or out of code or a block quote",
    AMBIGUOUS: "the same words stand in several places that the text around them does not tell apart",
    COPY: "the copy that was quoted is gone; other copies of the same words are still there",
    SHORT: "a few words only, now in other surroundings: they may stand there by chance",
    EDITED: "the words of the span changed",
    LOST: "nothing like the span was found in any document that changed",
}
"""Every reason with its explanation, from the most to the least telling."""
