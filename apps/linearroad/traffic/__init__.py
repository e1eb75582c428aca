"""Microscopic traffic: demand, simulation, identities, rows."""
