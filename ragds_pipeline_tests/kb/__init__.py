"""Tests of ``ragds_pipeline.kb``, one module a module."""
