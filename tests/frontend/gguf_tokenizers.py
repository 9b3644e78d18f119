#!/usr/bin/env python3
"""Trains small SentencePiece tokenizers, writes them as GGUF files without a model, and what sentencepiece makes of texts.

    gguf_tokenizers.py --write                                             the fixtures of test_gguf_tokenizer.c, in gguf/
    gguf_tokenizers.py --compare BUILD/tests/runtime/tokenizer/tokenize TOKENIZER.json NAME
                                                                           2000 texts; TOKENIZER.json is the bundle's

The texts are those of tests/runtime/tokenizer/strings.py, without the names of control tokens, which sentencepiece
takes as text. Training is deterministic. It needs sentencepiece, gguf and tokenizers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "runtime/tokenizer"))

import compare  # noqa: E402
import gguf  # noqa: E402
import kinds  # noqa: E402
import sentencepiece  # noqa: E402
from sentencepiece import sentencepiece_model_pb2  # noqa: E402
import strings  # noqa: E402

# A space before every text and no others of the user's tokens, as Llama 2; no space and such tokens, as Gemma. In
# "ties" many pieces have the same score, as the runs of spaces of Llama 2 do.
KINDS = {"spaced": {"add_dummy_prefix": True}, "plain": {"add_dummy_prefix": False, "user_defined_symbols": ["\n\n", "▁▁▁", "<x>"]},
         "ties": {"add_dummy_prefix": True}}


def trained(name: str) -> sentencepiece.SentencePieceProcessor:
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text.replace("\n", " ") for text in kinds.corpus()), vocab_size=700, model_type="bpe",
            model_prefix=f"{folder}/m", byte_fallback=True, character_coverage=0.9995, normalization_rule_name="identity",
            remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True, minloglevel=3, **KINDS[name])
        return tied(Path(folder) / "m.model") if name == "ties" else sentencepiece.SentencePieceProcessor(f"{folder}/m.model")


def tied(path: Path) -> sentencepiece.SentencePieceProcessor:
    """The model with eight scores instead of one for each piece, and one for all runs of spaces."""
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    for piece in model.pieces:
        if piece.type == piece.NORMAL and len(piece.piece) > 1:
            piece.score = -1e9 if set(piece.piece) == {"▁"} else -float(-piece.score // 50)
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def type_of(model: sentencepiece.SentencePieceProcessor, piece: int, user: list[str]) -> gguf.TokenType:
    if model.is_unknown(piece):
        return gguf.TokenType.UNKNOWN
    if model.is_control(piece):
        return gguf.TokenType.CONTROL
    if model.is_byte(piece):
        return gguf.TokenType.BYTE
    return gguf.TokenType.USER_DEFINED if model.id_to_piece(piece) in user else gguf.TokenType.NORMAL


def write_file(name: str, model: sentencepiece.SentencePieceProcessor, path: Path) -> None:
    file = gguf.GGUFWriter(path, "llama")
    pieces = range(model.vocab_size())
    file.add_tokenizer_model("llama")
    file.add_token_list([model.id_to_piece(i).encode() for i in pieces])
    file.add_token_scores([model.get_score(i) for i in pieces])
    file.add_token_types([type_of(model, i, KINDS[name].get("user_defined_symbols", [])) for i in pieces])
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    if not KINDS[name]["add_dummy_prefix"]:
        file.add_add_space_prefix(False)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def texts(count: int) -> list[str]:
    parts = strings.fragments()
    found = (strings.make(i, parts) for i in range(10 * count))
    return [text for text in found if not any(token in text for token in kinds.SPECIAL)][:count]


def write() -> None:
    for name in KINDS:
        model = trained(name)
        write_file(name, model, HERE / "gguf" / f"{name}.gguf")
        lines = [[text, model.encode(text), model.decode(model.encode(text))] for text in texts(200)]
        lines = [line if line[0] != line[2] else line[:2] for line in lines]  # most texts decode to themselves
        text = ",\n".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
        (HERE / "gguf" / f"{name}.json").write_text(f"[{text}]\n", encoding="utf-8")


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        write()
        return 0
    if len(sys.argv) != 5 or sys.argv[1] != "--compare":
        sys.exit(__doc__)
    driver, path, model, all_texts = sys.argv[2], sys.argv[3], trained(sys.argv[4]), texts(2000)
    wanted = [model.encode(text) for text in all_texts]
    failed = compare.report("encode", all_texts, compare.encode(driver, path, [t.encode() for t in all_texts], False), wanted)
    decoded = compare.decode(driver, path, wanted, True)
    return int(failed + compare.report("decode", wanted, decoded, [model.decode(ids) for ids in wanted]) > 0)


if __name__ == "__main__":
    sys.exit(main())
