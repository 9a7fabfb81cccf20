"""The simulation by which the test behind the verdicts of the leaderboard was chosen."""
