"""Banks as files of others: JSONL, CSV, Parquet and NumPy; the column mapping is guessed, shown and overridden."""

from ramify.store.exchange.importing import Imported, read
from ramify.store.exchange.mapping import Mapping
from ramify.store.exchange.report import Problem, Report
from ramify.store.exchange.stream import stem_of
from ramify.store.exchange.writing import write

__all__ = ["Imported", "Mapping", "Problem", "Report", "read", "stem_of", "write"]
