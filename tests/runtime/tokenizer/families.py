"""Patterns that families publish in their tokenizer.json, or that transformers converts them to."""
LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*%s"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
          r"|\s+(?!\S)|\s")
LLAMA3 = rf"{CONTRACTIONS}|{LETTERS}|\p{{N}}{{1,3}}|{SYMBOLS}|{SPACE}"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}", r"[^\s\p{L}\p{M}")
O200K = CASED % (CONTRACTIONS + "?", CONTRACTIONS + "?") + rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACE}"
TEKKEN = CASED % ("", "") + rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACE}"
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{SPACE}")
DEEPSEEK_CJK = "[一-龥぀-ゟ゠-ヿ]+"
DEEPSEEK_V2 = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-Ֆ]+"
DEEPSEEK_PUNCTUATION = r"\s?[!-/:-~！-／：-～‘-‟　-。]+"
DEEPSEEK_CODER_CJK = "[一-龥ࠀ-一가-퟿]+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
KIMI = (r"[\p{Han}]+|" + (CASED % (CONTRACTIONS + "?", CONTRACTIONS + "?")).replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]")
        + rf"|\p{{N}}{{1,3}}|{SYMBOLS}|{SPACE}")
HUNYUAN = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{L}&&[^\p{Han}]]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+"
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
NOUGAT = r"[\(\)\[\]\{\}]|([!\"#\$%\&'\*\+,\-\./:;<=>\?\\\^_`\|\~])\1*"
PATTERNS = [GPT2, R50K, CL100K, LLAMA3, QWEN, QWEN35, O200K, TEKKEN, DEEPSEEK, DEEPSEEK_CJK, DEEPSEEK_V2, DEEPSEEK_PUNCTUATION,
            DEEPSEEK_CODER_CJK, BLOOM, KIMI, HUNYUAN, CLIP, NOUGAT, r"\p{N}{1,3}", r"\p{N}", r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+",
            r"\s{2,}|[\n\r\t]", " {2,}", r"\s+", r" +▁", "^▁+$", r"(?=(\d{3})+(?!\d))", r"\d{3}(?=(?:\d{3})*\b)"]
