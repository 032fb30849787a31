"""What runs came to: variants, summaries and curves."""

from attractor.results.contrast import contrast as contrast
from attractor.results.curves import curve as curve
from attractor.results.summary import summary as summary
from attractor.results.survival import ending as ending
from attractor.results.survival import log_rank as log_rank
from attractor.results.survival import survival as survival
from attractor.results.variants import variants as variants
from attractor.runs.read import load_runs as load_runs
from attractor.runs.read import read_runs as read_runs
