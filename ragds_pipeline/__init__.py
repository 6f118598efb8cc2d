"""ragds: golden sets for evaluating RAG systems, from a folder of documents to frozen, re-validated snapshots."""

__version__ = "0.1.0"
