"""Tests of ``ragds_pipeline.review``."""
