"""Stretches of a text: what can be quoted, and finding where a quote stands, in one document or the whole KB.

What belongs here: plain functions over texts and offsets. What does not: stages, Dagster, files.
Offsets are 0-based, end-exclusive code points of the text that was passed in (DESIGN.md 1 and 2).
"""
