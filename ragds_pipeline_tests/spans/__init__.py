"""Tests of ``ragds_pipeline.spans``, one module a module."""
