"""The compiled build (docs/decisions/058): its twin is made, runs, and does what the pure build does."""
