"""What the leaderboard shows, from records to tables; ``leaderboard.py`` in the repository root
writes the pages."""
