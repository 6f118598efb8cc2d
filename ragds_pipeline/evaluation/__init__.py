"""Scoring chunkers, retrievers and whole RAG systems on a frozen golden set. Nothing is here yet.

What will belong here: span metrics over character intervals, chunkers, retrievers, answer and refusal metrics. It reads
snapshots and nothing else of the pipeline.
"""
