"""Settings of the whole suite."""

import logging
import os

import torch

# two workers share two cores; more threads than that only get in each other's way
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# torch's tracers write thousands of records a second for tools of their own
logging.getLogger("torch.__trace").disabled = True
