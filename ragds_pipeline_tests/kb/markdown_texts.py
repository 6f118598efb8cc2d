"""Hypothesis strategies for texts that look like Markdown and are full of what breaks offsets."""

from __future__ import annotations

from hypothesis import strategies as st

from ragds_pipeline.kb.normalise import normalise

_WORDS = st.sampled_from(
    [
        *(
            "a",
            "the",
            "Rule",
            "e.g.",
            "3.5",
            "EUR 1.200,50",
            "Sig.",
            "No.",
            "U.S.",
            "x.y",
            "end.",
            "End!",
            "so?",
        ),
        *(
            "日本語の文。",
            "「はい。」",
            "持股比例",
            "と言った",
            "🚀",
            "👩‍👩‍👧",
            "🇮🇹🇫🇷",
            "e\u0301",
            "हिन्दी",
            "naïve",
            "ｶﾞ",
        ),
        *(
            "`code`",
            "**bold**",
            "[a](b)",
            "[x]",
            "<b>",
            "<!-- c -->",
            "|",
            "\\|",
            "https://a.b/c?d=e.f",
            "---",
            "\ufeff",
        ),
    ]
)
_BLANKS = st.sampled_from([" ", " ", " ", "  ", "\u00a0", "\u3000", "\t", "\x0b", "\x0c", "\x85", "\u2028", "\u200b"])
_PREFIXES = st.sampled_from(
    [
        *(
            "",
            "",
            "",
            "",
            "# ",
            "## ",
            "### ",
            "###### ",
            "- ",
            "* ",
            "1. ",
            "> ",
            "> > ",
            "    ",
            "\t",
            "  - ",
        ),
        *(
            "| ",
            "|---|---|",
            "```",
            "~~~",
            "```py",
            "<div>",
            "<!--",
            "-->",
            "===",
            "---",
            "...",
            "[r]: u",
            "- [ ] ",
        ),
        *("  ", "   ", "> - ", "- # ", "-", ">", "+\t", "#", "\\# ", "|a|b|"),
    ]
)


@st.composite
def _line(draw: st.DrawFn) -> str:
    words = draw(st.lists(st.tuples(_WORDS, _BLANKS), max_size=12))
    return draw(_PREFIXES) + "".join(word + blank for word, blank in words)


raw_texts: st.SearchStrategy[str] = st.one_of(
    st.lists(st.tuples(_line(), st.sampled_from(["\n", "\n", "\n\n", "\r\n", "\r", "\n \n"])), max_size=30).map(
        lambda lines: "".join(line + end for line, end in lines)
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80),
    st.text("#-=|>`~* \n\tab1.[]:<!", max_size=80),
)
"""As read from a file: line ends of all kinds, not in NFC."""

texts: st.SearchStrategy[str] = raw_texts.map(normalise)
