"""Tests of candidates."""
