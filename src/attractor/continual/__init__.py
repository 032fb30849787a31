"""Continual learning: strategies, the learner and what it kept."""
