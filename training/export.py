"""A checkpoint as files that ``transformers`` loads: weights, configuration, character tokenizer, card."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ramify.tasks.pocket.alphabet import CHARACTERS, EOS, PAD, SPECIALS, TOKENS
from training.model import EPSILON, POSITIONS, THETA, VOCABULARY, Llama, Shape

__all__ = ["archive", "load", "round_half", "write"]


def round_half(model: Llama) -> Llama:
    """Round every weight to half precision: what is evaluated is what is stored."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half().float())
    return model


def write(folder: Path, model: Llama, card: dict[str, Any]) -> None:
    """All files of a checkpoint. The card comes last: a folder with a card is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    save_half(folder / "model.safetensors", dict(model.state_dict()))
    _json(folder / "config.json", _config(model.shape))
    _json(folder / "tokenizer.json", _tokenizer())
    _json(folder / "tokenizer_config.json", _tokenizer_config())
    _json(folder / "card.json", card)


def save_half(path: Path, weights: dict[str, Tensor]) -> None:
    """Weights as half-precision safetensors."""
    save_file({k: v.detach().half().cpu().contiguous() for k, v in weights.items()}, path, {"format": "pt"})


def load(folder: Path, device: torch.device) -> Llama:
    """A checkpoint in single precision."""
    config = json.loads((folder / "config.json").read_text())
    shape = Shape(config["num_hidden_layers"], config["hidden_size"], config["intermediate_size"])
    model = Llama(shape)
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict({name: weight.float() for name, weight in weights.items()})
    return model.to(device).eval()


def archive(path: Path, folder: Path) -> None:
    """Everything under a folder as one tar file, replaced at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    with tarfile.open(draft, "w") as tar:
        for item in sorted(folder.rglob("*")):
            if item.is_file():
                tar.add(item, arcname=str(item.relative_to(folder)))
    draft.replace(path)


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def _config(shape: Shape) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.width // shape.heads,
        "hidden_act": "silu",
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": EPSILON,
        "rope_theta": THETA,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": EOS,
        "pad_token_id": PAD,
        "dtype": "float32",  # weights are stored in half precision and used in single
        "use_cache": True,
    }


def _tokenizer() -> dict[str, Any]:
    """Byte-pair encoding with no merges: every character is a token."""
    added = [
        {
            "id": TOKENS.index(token),
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token in SPECIALS
    ]
    model: dict[str, Any] = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {token: i for i, token in enumerate(TOKENS)},
        "merges": [],
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": model,
    }


def _tokenizer_config() -> dict[str, Any]:
    assert len(CHARACTERS) + len(SPECIALS) == VOCABULARY
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIALS[PAD],
        "eos_token": SPECIALS[EOS],
        "model_max_length": POSITIONS,
        "clean_up_tokenization_spaces": False,
        "padding_side": "left",
    }
