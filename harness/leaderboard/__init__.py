"""Tables and pages of the leaderboard, made from records; ``leaderboard.py`` in the repository root
writes them."""
