"""What encoders of word pieces learn from plain text."""
