"""Random Llama checkpoints in the standard layout, written by transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SYMBOLS = "0123456789+-*/=() abcdefghijklmnopqrstuvwxyz,.:;?!\n"
TOKENS = ("<pad>", "<eos>", *SYMBOLS)


def save(
    folder: Path, *, width: int = 64, layers: int = 2, heads: int = 4, dtype: str = "float32", **options: Any
) -> None:
    """Write a random model and its tokenizer."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        **{
            "vocab_size": len(TOKENS),
            "hidden_size": width,
            "intermediate_size": 172,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "max_position_embeddings": 256,
            "bos_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": 0,
            "tie_word_embeddings": True,
            "initializer_range": 0.15,  # wide enough that every part of the network matters
        }
        | options
    )
    model = LlamaForCausalLM(config)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 1.0, 0.1)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(TOKENS)}, unk_token="<pad>"))
    tokenizer.add_special_tokens(["<pad>", "<eos>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>", "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(special))
