"""How fast attractor is: each cell beside torch's layers, and how time grows."""

from attractor.bench.cells import Shape as Shape
from attractor.bench.result import Result as Result
from attractor.bench.result import load as load
from attractor.bench.result import losses as losses
from attractor.bench.result import save as save
from attractor.bench.run import bench as bench
from attractor.bench.table import tables as tables
