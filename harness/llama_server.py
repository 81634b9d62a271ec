"""llama.cpp's own server, on a model made here: `python llama_server.py MODEL.gguf PORT`.

Runs where `xllamacpp`, which carries that server, and `gguf` can be imported. The model is a llama
of one layer and 64 dimensions with random weights. Two of its dimensions are set by hand, so that
it answers like a grader: at the end of a prompt one of the keys 1 to 5 is likeliest, and after a
key the end; after a 1, a 0 now and then. Which key, and how likely, is chance, and differs from
prompt to prompt. Its tokenizer knows single characters.
"""

from __future__ import annotations

import string
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CONTEXT = 16_384
_SIZE, _HEADS, _INNER = 64, 4, 128
_KEYS = "12345"
_TEXT, _ANSWERED, _ONE = 0, 1, 2
"""Dimensions that say what was read last: a part of a text, a key, the key 1."""
_SLIGHT = 0.1
"""The weight of what the layer adds, which must not drown what was read last."""
_TEMPLATE = (
    "{% for turn in messages %}{{ turn['role'] + ': ' + turn['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def write_model(path: Path, *, seed: int) -> None:
    """Write the model. The same seed gives the same bytes."""
    from gguf import GGUFWriter, LlamaFileType, TokenType

    rng = np.random.default_rng(seed)

    def chance(*shape: int) -> NDArray[np.float32]:
        return (0.3 * rng.standard_normal(shape)).astype(np.float32)

    # In a llama's vocabulary a space is this mark.
    characters = ["\u2581", *string.digits, *string.ascii_letters, *string.punctuation]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *characters]
    kinds = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL]
    kinds += [TokenType.BYTE] * 256 + [TokenType.NORMAL] * len(characters)
    place = {token: index for index, token in enumerate(tokens)}

    meant, said = chance(len(tokens), _SIZE), chance(len(tokens), _SIZE)
    meant[:, _TEXT], meant[:, [_ANSWERED, _ONE]] = 8, 0
    said[:, [_TEXT, _ANSWERED, _ONE]] = 0
    for key in (*_KEYS, "0"):
        meant[place[key], [_TEXT, _ANSWERED]] = 0, 8
    meant[place["1"], _ONE] = 4
    said[[place[key] for key in _KEYS], _TEXT] = 2
    said[place["1"], _TEXT] = 2.8
    said[place["</s>"], _ANSWERED] = 3.6
    said[place["0"], _ONE] = 9.2

    writer = GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_SIZE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_SIZE // _HEADS)
    writer.add_file_type(LlamaFileType.ALL_F32)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(index) for index in range(len(tokens))])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(_TEMPLATE)
    writer.add_tensor("token_embd.weight", meant)
    writer.add_tensor("output.weight", said)
    for norm in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{norm}.weight", np.ones(_SIZE, np.float32))
    for part in ("attn_q", "attn_k", "attn_v"):
        writer.add_tensor(f"blk.0.{part}.weight", chance(_SIZE, _SIZE))
    writer.add_tensor("blk.0.attn_output.weight", _SLIGHT * chance(_SIZE, _SIZE))
    for part in ("ffn_gate", "ffn_up"):
        writer.add_tensor(f"blk.0.{part}.weight", chance(_INNER, _SIZE))
    writer.add_tensor("blk.0.ffn_down.weight", _SLIGHT * chance(_SIZE, _INNER))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(path: Path, port: int) -> None:
    """Serve the model on loopback until the process is ended."""
    import xllamacpp

    asked = xllamacpp.CommonParams()
    asked.model.path = str(path)
    asked.n_ctx = CONTEXT
    asked.n_parallel = 2
    exact = xllamacpp.ggml_type.GGML_TYPE_F32  # with half the digits, equal prompts differ by 0.01
    asked.cache_type_k = asked.cache_type_v = exact
    asked.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    asked.hostnames = ["127.0.0.1"]
    asked.port = port
    server = xllamacpp.Server(asked)  # ends when it is forgotten
    while server:
        time.sleep(60)


if __name__ == "__main__":
    model, at = Path(sys.argv[1]), int(sys.argv[2])
    write_model(model, seed=1)
    serve(model, at)
