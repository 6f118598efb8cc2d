"""Tests of claude."""
