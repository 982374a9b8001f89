"""The log of small facts."""
