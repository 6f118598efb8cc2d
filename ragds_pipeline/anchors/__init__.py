"""What becomes of evidence when documents change: the re-anchoring ladder (DESIGN.md 10).

What belongs here: plain functions that find the spans of one revision in the next, say how sure that is, and what
changed. What does not: reading a KB, writing events, asking people; and nothing here judges whether an answer is
still right: where that could be in doubt, the event says so and a person looks.
"""
