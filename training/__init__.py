"""The code that made the pocket checkpoints: data, model, training, heads, export. Needs torch."""
