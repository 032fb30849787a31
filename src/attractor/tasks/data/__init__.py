"""Data sets on disk: where they are, what they must look like, how to get and read them."""

from attractor.tasks.data.archive import extract as extract
from attractor.tasks.data.arrays import load_array as load_array
from attractor.tasks.data.arrays import load_lines as load_lines
from attractor.tasks.data.catalogue import DATASETS as DATASETS
from attractor.tasks.data.catalogue import Dataset as Dataset
from attractor.tasks.data.catalogue import File as File
from attractor.tasks.data.catalogue import Part as Part
from attractor.tasks.data.fetching import fetch as fetch
from attractor.tasks.data.intact import Status as Status
from attractor.tasks.data.intact import verify as verify
from attractor.tasks.data.root import data_root as data_root
