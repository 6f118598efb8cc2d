"""Tests of the pipeline; nothing here is imported by the product."""
