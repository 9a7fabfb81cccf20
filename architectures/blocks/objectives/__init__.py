"""Objectives by which encoders of word pieces learn from plain text."""
