"""Loading benchmarks: records from files, folders or the hub, verified against what is known about them."""

from ramify.tasks.loading.files import found_in, from_hub, records
from ramify.tasks.loading.spec import Item, Spec, digest, load

__all__ = ["Item", "Spec", "digest", "found_in", "from_hub", "load", "records"]
