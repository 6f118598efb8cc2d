"""Tests of ``ragds_pipeline.filters``."""
