"""Filters over candidates, cheapest first: code, then Claude.

A filter gives verdicts with reasons; it never edits a candidate.
"""
