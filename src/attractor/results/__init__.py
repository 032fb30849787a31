"""What runs came to: variants, summaries, curves, and published numbers beside them."""

from attractor.results.curves import curve as curve
from attractor.results.published import published as published
from attractor.results.summary import summary as summary
from attractor.results.variants import variants as variants
from attractor.runs.read import load_runs as load_runs
from attractor.runs.read import read_runs as read_runs
