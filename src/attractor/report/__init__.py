"""Saved runs as one HTML page that opens anywhere, with or without a network."""

from attractor.report.build import build as build
from attractor.report.build import write as write
