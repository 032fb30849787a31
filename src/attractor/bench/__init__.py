"""How fast attractor is: each cell beside torch's layers, and how time grows."""

from attractor.bench.run import again as again
from attractor.bench.run import bench as bench
from attractor.results.speed import Result as Result
from attractor.results.speed import Shape as Shape
from attractor.results.speed import load as load
from attractor.results.speed import losses as losses
from attractor.results.speed import save as save
from attractor.results.speed_tables import tables as tables
