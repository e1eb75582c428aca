"""Figures and plots of a generated directory."""
