/* Loads the normalizers, pre-tokenizers and decoders of tokenizer.json as steps. Each family has a table; a type that
 * is not in it is refused by name. A new type needs a loader, a line in the table, and a step. */
#include <openssl/evp.h>

#include "base/utf8.h"
#include "runtime/tokenizer/load.h"
#include "runtime/tokenizer/pattern.h"
#include "runtime/tokenizer/steps.h"
#include "runtime/tokenizer/unicode.h"

/* GPT-2's pattern, which `tokenizers` uses in ByteLevel */
#define GPT2_PATTERN "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

#define NUMBER "[\\p{N}\\x{11DE0}-\\x{11DE9}\\x{16FF4}-\\x{16FF6}]" /* of Unicode 17 */

enum { MAX_NESTING = 32 };

typedef lp_status part_fn(lp_loader *loader, const lp_json *at, lp_steps *out);

typedef struct {
  const char *type;
  part_fn *load;
} part;

typedef struct {
  const char *kind;     /* for messages */
  const char *sequence; /* the member of a Sequence that lists its parts */
  const part *parts;
  size_t count;
} part_family;

static lp_status refuse(lp_loader *loader, const lp_json *at, const part_family *family, const char *type) {
  LP_OWNED(lp_buf_free) lp_buf names = {0};
  for (size_t i = 0; i < family->count; i++)
    lp_buf_printf(&names, "%s, ", family->parts[i].type);
  lp_status status = lp_json_error(at, loader->diag, "the %s '%s' is not supported", family->kind, type);
  lp_note(loader->diag, LP_LOC_FILE(loader->file), "supported are %sSequence", lp_buf_text(&names));
  return status;
}

static lp_status load_part(lp_loader *loader, const lp_json *at, const part_family *family, int depth, lp_steps *out) {
  const char *type;
  size_t size;
  if (!lp_json_is_given(at)) return LP_OK;
  if (depth > MAX_NESTING) return lp_error(loader->diag, LP_LOC_FILE(loader->file), "nested too deeply");
  LP_TRY(lp_json_object(at, loader->diag));
  LP_TRY(lp_load_text(loader, at, "type", &type, &size));
  if (lp_streq(type, "Sequence")) {
    lp_json list = lp_json_member(at, family->sequence);
    LP_TRY(lp_json_array(&list, loader->diag));
    LP_FOR_ITEMS(item, &list)
      LP_TRY(load_part(loader, &item, family, depth + 1, out));
    return LP_OK;
  }
  for (size_t i = 0; i < family->count; i++)
    if (lp_streq(type, family->parts[i].type)) return family->parts[i].load(loader, at, out);
  return refuse(loader, at, family, type);
}

/* ---- helpers of several parts ------------------------------------------------------------------------------------ */

static lp_status compile(lp_loader *loader, const lp_json *at, const char *text, size_t size, bool literal,
                         lp_pattern **out) {
  char *why = NULL;
  *out = lp_pattern_create(text, size, literal, &why);
  if (*out) return LP_OK;
  lp_status status = lp_json_error(at, loader->diag, "the pattern '%s' %s", text, why);
  free(why);
  return status;
}

/* Reads a pattern: {"String": "..."} or {"Regex": "..."}. */
static lp_status load_pattern(lp_loader *loader, const lp_json *at, lp_pattern **out) {
  lp_json pattern = lp_json_member(at, "pattern"), string = lp_json_member(&pattern, "String");
  const char *text;
  size_t size;
  LP_TRY(lp_json_object(&pattern, loader->diag));
  LP_TRY(lp_load_text(loader, &pattern, string.value ? "String" : "Regex", &text, &size));
  return compile(loader, &pattern, text, size, string.value != NULL, out);
}

static lp_status push_split(lp_loader *loader, const lp_json *at, const char *pattern, lp_split_behaviour behaviour,
                            lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_split, .behaviour = behaviour};
  LP_TRY(compile(loader, at, pattern, strlen(pattern), false, &step.pattern));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status load_behaviour(lp_loader *loader, const lp_json *at, lp_split_behaviour *out) {
  static const char *const names[] = {[LP_SPLIT_REMOVED] = "Removed",
                                      [LP_SPLIT_ISOLATED] = "Isolated",
                                      [LP_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                      [LP_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
                                      [LP_SPLIT_CONTIGUOUS] = "Contiguous"};
  const char *name;
  size_t size;
  LP_TRY(lp_load_text(loader, at, "behavior", &name, &size));
  for (size_t i = 0; i < LP_COUNT(names); i++) {
    if (!lp_streq(name, names[i])) continue;
    *out = (lp_split_behaviour)i;
    return LP_OK;
  }
  return lp_json_error(LP_MEMBER(at, "behavior"), loader->diag, "unknown behavior '%s'", name);
}

/* Reads a member that holds exactly one character. */
static lp_status load_character(lp_loader *loader, const lp_json *at, const char *key, lp_tokenizer_step *step) {
  size_t bad;
  LP_TRY(lp_load_text(loader, at, key, &step->text, &step->size));
  if (step->size > 0 && lp_utf8_length(step->text, step->size, &bad) == step->size) return LP_OK;
  return lp_json_error(LP_MEMBER(at, key), loader->diag, "wanted one character, found '%s'", step->text);
}

static lp_status load_metaspace(lp_loader *loader, const lp_json *at, lp_tokenizer_step *step) {
  static const char *const schemes[] = {
      [LP_PREFIX_NEVER] = "never", [LP_PREFIX_FIRST] = "first", [LP_PREFIX_ALWAYS] = "always"};
  bool add_prefix;
  LP_TRY(load_character(loader, at, "replacement", step));
  LP_TRY(lp_load_bool(loader, at, "add_prefix_space", true, &add_prefix));
  step->prefix = LP_PREFIX_ALWAYS;
  lp_json scheme_at = lp_json_member(at, "prepend_scheme");
  if (scheme_at.value) {
    const char *scheme;
    size_t size;
    LP_TRY(lp_load_text(loader, at, "prepend_scheme", &scheme, &size));
    step->prefix = -1;
    for (int i = 0; i < (int)LP_COUNT(schemes); i++)
      if (lp_streq(scheme, schemes[i])) step->prefix = i;
    if (step->prefix < 0) return lp_json_error(&scheme_at, loader->diag, "unknown scheme '%s'", scheme);
  }
  if (!add_prefix) step->prefix = LP_PREFIX_NEVER;
  return LP_OK;
}

static lp_status load_replace(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_replace};
  LP_TRY(lp_load_text(loader, at, "content", &step.text, &step.size));
  LP_TRY(load_pattern(loader, at, &step.pattern));
  lp_vec_push(out, step);
  return LP_OK;
}

/* ---- normalizers ------------------------------------------------------------------------------------------------- */

static lp_status normalizer_prepend(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_prepend};
  LP_TRY(lp_load_text(loader, at, "prepend", &step.text, &step.size));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status normalizer_strip(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_strip};
  LP_TRY(lp_load_bool(loader, at, "strip_left", true, &step.left));
  LP_TRY(lp_load_bool(loader, at, "strip_right", true, &step.right));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status push_plain(lp_step_fn *run, lp_steps *out) {
  lp_vec_push(out, ((lp_tokenizer_step){.run = run}));
  return LP_OK;
}

static lp_status normalizer_lowercase(lp_loader *loader, const lp_json *at, lp_steps *out) {
  (void)loader, (void)at;
  return push_plain(lp_step_lowercase, out);
}

static lp_status normalizer_bytes(lp_loader *loader, const lp_json *at, lp_steps *out) {
  (void)loader, (void)at;
  return push_plain(lp_step_bytes, out);
}

static lp_status normalizer_nmt(lp_loader *loader, const lp_json *at, lp_steps *out) {
  (void)loader, (void)at;
  return push_plain(lp_step_nmt, out);
}

static lp_status normalizer_strip_accents(lp_loader *loader, const lp_json *at, lp_steps *out) {
  (void)loader, (void)at;
  lp_vec_push(out, ((lp_tokenizer_step){.run = lp_step_drop_marks, .left = true}));
  return LP_OK;
}

/* The type is the name of the form. */
static lp_status normalizer_form(lp_loader *loader, const lp_json *at, lp_steps *out) {
  static const char *const names[] = {[LP_NFD] = "NFD", [LP_NFC] = "NFC", [LP_NFKD] = "NFKD", [LP_NFKC] = "NFKC"};
  lp_json type = lp_json_member(at, "type");
  lp_tokenizer_step step = {.run = lp_step_normal_form};
  (void)loader;
  for (size_t i = 0; i < LP_COUNT(names); i++)
    if (lp_json_equals(&type, names[i])) step.form = (lp_normal_form)i;
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status normalizer_bert(lp_loader *loader, const lp_json *at, lp_steps *out) {
  bool cleans, parts_cjk, strips, lowers;
  LP_TRY(lp_load_bool(loader, at, "clean_text", true, &cleans));
  LP_TRY(lp_load_bool(loader, at, "handle_chinese_chars", true, &parts_cjk));
  LP_TRY(lp_load_bool(loader, at, "lowercase", true, &lowers));
  LP_TRY(lp_load_bool(loader, at, "strip_accents", lowers, &strips));
  if (cleans) LP_TRY(push_plain(lp_step_clean, out));
  if (parts_cjk) LP_TRY(push_plain(lp_step_part_cjk, out));
  if (strips) {
    lp_vec_push(out, ((lp_tokenizer_step){.run = lp_step_normal_form, .form = LP_NFD}));
    LP_TRY(push_plain(lp_step_drop_marks, out));
  }
  return lowers ? push_plain(lp_step_lowercase, out) : LP_OK;
}

/* Reads SentencePiece's rules in base 64; without a map the step changes nothing. */
static lp_status normalizer_precompiled(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_json member = lp_json_member(at, "precompiled_charsmap");
  lp_tokenizer_step step = {.run = lp_step_charsmap};
  if (!lp_json_is_given(&member)) return LP_OK;
  LP_TRY(lp_load_text(loader, at, "precompiled_charsmap", &step.text, &step.size));
  if (step.size == 0) return LP_OK;
  char *data = lp_arena_alloc(loader->tokenizer->arena, step.size + 1);
  int size = step.size <= INT32_MAX
                 ? EVP_DecodeBlock((unsigned char *)data, (const unsigned char *)step.text, (int)step.size)
                 : -1;
  for (size_t i = step.size; size > 0 && i > 0 && step.text[i - 1] == '='; i--)
    size--;
  step.charsmap = size > 0 ? lp_charsmap_create(loader->tokenizer->arena, data, (size_t)size) : NULL;
  if (!step.charsmap) return lp_json_error(&member, loader->diag, "the map of characters is damaged");
  lp_vec_push(out, step);
  return LP_OK;
}

static const part normalizer_parts[] = {
    {"Prepend", normalizer_prepend},
    {"Replace", load_replace},
    {"Strip", normalizer_strip},
    {"Lowercase", normalizer_lowercase},
    {"ByteLevel", normalizer_bytes},
    {"NFC", normalizer_form},
    {"NFD", normalizer_form},
    {"NFKC", normalizer_form},
    {"NFKD", normalizer_form},
    {"StripAccents", normalizer_strip_accents},
    {"BertNormalizer", normalizer_bert},
    {"Precompiled", normalizer_precompiled},
    {"Nmt", normalizer_nmt},
};
static const part_family normalizers = {"normalizer", "normalizers", normalizer_parts, LP_COUNT(normalizer_parts)};

lp_status lp_load_normalizer(lp_loader *loader, const lp_json *at) {
  return load_part(loader, at, &normalizers, 0, &loader->tokenizer->normalizer);
}

/* ---- pre-tokenizers ---------------------------------------------------------------------------------------------- */

static lp_status pre_byte_level(lp_loader *loader, const lp_json *at, lp_steps *out) {
  bool add_prefix, use_regex;
  LP_TRY(lp_load_bool(loader, at, "add_prefix_space", true, &add_prefix));
  LP_TRY(lp_load_bool(loader, at, "use_regex", true, &use_regex));
  if (add_prefix)
    lp_vec_push(out, ((lp_tokenizer_step){.run = lp_step_prefix, .text = " ", .size = 1, .prefix = LP_PREFIX_ALWAYS}));
  if (use_regex) LP_TRY(push_split(loader, at, GPT2_PATTERN, LP_SPLIT_ISOLATED, out));
  lp_vec_push(out, ((lp_tokenizer_step){.run = lp_step_bytes}));
  return LP_OK;
}

static lp_status pre_split(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_split};
  LP_TRY(load_behaviour(loader, at, &step.behaviour));
  LP_TRY(lp_load_bool(loader, at, "invert", false, &step.invert));
  LP_TRY(load_pattern(loader, at, &step.pattern));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status pre_metaspace(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step prefix = {.run = lp_step_prefix}, replace = {.run = lp_step_replace},
                    split = {.run = lp_step_split};
  bool splits;
  LP_TRY(load_metaspace(loader, at, &prefix));
  LP_TRY(lp_load_bool(loader, at, "split", true, &splits));
  replace.text = prefix.text;
  replace.size = prefix.size;
  LP_TRY(compile(loader, at, " ", 1, true, &replace.pattern));
  lp_vec_push(out, replace);
  lp_vec_push(out, prefix);
  if (!splits) return LP_OK;
  split.behaviour = LP_SPLIT_MERGED_WITH_NEXT;
  LP_TRY(compile(loader, at, prefix.text, prefix.size, true, &split.pattern));
  lp_vec_push(out, split);
  return LP_OK;
}

static lp_status pre_digits(lp_loader *loader, const lp_json *at, lp_steps *out) {
  bool individual;
  LP_TRY(lp_load_bool(loader, at, "individual_digits", false, &individual));
  return push_split(loader, at, NUMBER, individual ? LP_SPLIT_ISOLATED : LP_SPLIT_CONTIGUOUS, out);
}

/* Punctuation of Unicode 8, and of ASCII. */
static lp_status push_punctuation(lp_loader *loader, const lp_json *at, lp_split_behaviour behaviour, lp_steps *out) {
  LP_OWNED(lp_buf_free) lp_buf source = {0};
  lp_buf_puts(&source, "[!-/:-@\\[-`{-~\\x{166D}\\x{111C9}[\\p{P}&&[^");
  lp_unicode_append_since(9, &source);
  lp_buf_puts(&source, "]]]");
  return push_split(loader, at, source.data, behaviour, out);
}

static lp_status pre_punctuation(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_split_behaviour behaviour = LP_SPLIT_ISOLATED;
  lp_json member = lp_json_member(at, "behavior");
  if (member.value) LP_TRY(load_behaviour(loader, at, &behaviour));
  return push_punctuation(loader, at, behaviour, out);
}

static lp_status pre_whitespace(lp_loader *loader, const lp_json *at, lp_steps *out) {
  LP_TRY(push_split(loader, at, "[\\w\\p{Join_Control}]+|[^\\w\\p{Join_Control}\\s]+", LP_SPLIT_REMOVED, out));
  out->data[out->count - 1].invert = true;
  return LP_OK;
}

static lp_status pre_whitespace_split(lp_loader *loader, const lp_json *at, lp_steps *out) {
  return push_split(loader, at, "\\s", LP_SPLIT_REMOVED, out);
}

static lp_status pre_bert(lp_loader *loader, const lp_json *at, lp_steps *out) {
  LP_TRY(pre_whitespace_split(loader, at, out));
  return push_punctuation(loader, at, LP_SPLIT_ISOLATED, out);
}

static lp_status pre_scripts(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_buf source = {0};
  lp_pattern_of_scripts(&source);
  lp_status status = push_split(loader, at, lp_buf_text(&source), LP_SPLIT_REMOVED, out);
  lp_buf_free(&source);
  if (status == LP_OK) out->data[out->count - 1].invert = true;
  return status;
}

static lp_status pre_delimiter(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_split, .behaviour = LP_SPLIT_REMOVED};
  LP_TRY(load_character(loader, at, "delimiter", &step));
  LP_TRY(compile(loader, at, step.text, step.size, true, &step.pattern));
  lp_vec_push(out, step);
  return LP_OK;
}

static const part pre_tokenizer_parts[] = {
    {"ByteLevel", pre_byte_level},
    {"Split", pre_split},
    {"Metaspace", pre_metaspace},
    {"Digits", pre_digits},
    {"Punctuation", pre_punctuation},
    {"Whitespace", pre_whitespace},
    {"WhitespaceSplit", pre_whitespace_split},
    {"BertPreTokenizer", pre_bert},
    {"CharDelimiterSplit", pre_delimiter},
    {"UnicodeScripts", pre_scripts},
};
static const part_family pre_tokenizers = {"pre-tokenizer", "pretokenizers", pre_tokenizer_parts,
                                           LP_COUNT(pre_tokenizer_parts)};

lp_status lp_load_pre_tokenizer(lp_loader *loader, const lp_json *at) {
  return load_part(loader, at, &pre_tokenizers, 0, &loader->tokenizer->pre_tokenizer);
}

/* ---- decoders ---------------------------------------------------------------------------------------------------- */

static lp_status decoder_bytes(lp_loader *loader, const lp_json *at, lp_steps *out) {
  (void)loader, (void)at;
  return push_plain(lp_step_unbytes, out);
}

static lp_status decoder_byte_fallback(lp_loader *loader, const lp_json *at, lp_steps *out) {
  (void)loader, (void)at;
  return push_plain(lp_step_byte_fallback, out);
}

static lp_status decoder_fuse(lp_loader *loader, const lp_json *at, lp_steps *out) {
  (void)loader, (void)at;
  return push_plain(lp_step_fuse, out);
}

static lp_status decoder_metaspace(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_unmetaspace};
  LP_TRY(load_metaspace(loader, at, &step));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status load_cut(lp_loader *loader, const lp_json *at, const char *key, size_t *out) {
  int64_t count;
  LP_TRY(lp_json_i64(LP_MEMBER(at, key), 0, INT32_MAX, &count, loader->diag));
  *out = (size_t)count;
  return LP_OK;
}

static lp_status decoder_strip(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_cut};
  LP_TRY(load_character(loader, at, "content", &step));
  LP_TRY(load_cut(loader, at, "start", &step.cut_left));
  LP_TRY(load_cut(loader, at, "stop", &step.cut_right));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status decoder_bpe(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_suffix};
  LP_TRY(lp_load_text(loader, at, "suffix", &step.text, &step.size));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status decoder_wordpiece(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_unwordpiece};
  LP_TRY(lp_load_text(loader, at, "prefix", &step.text, &step.size));
  LP_TRY(lp_load_bool(loader, at, "cleanup", true, &step.left));
  lp_vec_push(out, step);
  return LP_OK;
}

static lp_status decoder_ctc(lp_loader *loader, const lp_json *at, lp_steps *out) {
  lp_tokenizer_step step = {.run = lp_step_ctc};
  size_t ignored;
  LP_TRY(lp_load_text(loader, at, "pad_token", &step.text, &step.size));
  LP_TRY(lp_load_text(loader, at, "word_delimiter_token", &step.second, &ignored));
  LP_TRY(lp_load_bool(loader, at, "cleanup", true, &step.left));
  lp_vec_push(out, step);
  return LP_OK;
}

static const part decoder_parts[] = {
    {"ByteLevel", decoder_bytes}, {"Metaspace", decoder_metaspace}, {"ByteFallback", decoder_byte_fallback},
    {"Fuse", decoder_fuse},       {"Strip", decoder_strip},         {"Replace", load_replace},
    {"BPEDecoder", decoder_bpe},  {"WordPiece", decoder_wordpiece}, {"CTC", decoder_ctc},
};
static const part_family decoders = {"decoder", "decoders", decoder_parts, LP_COUNT(decoder_parts)};

lp_status lp_load_decoder(lp_loader *loader, const lp_json *at) {
  loader->tokenizer->has_decoder = lp_json_is_given(at);
  return load_part(loader, at, &decoders, 0, &loader->tokenizer->decoder);
}

/* ---- pattern of Unicode scripts ---------------------------------------------------------------------------------- */

/* The scripts of Unicode 9, that of this pre-tokenizer. Han, Hiragana and Katakana count as one; they, Common and
 * Devanagari are not listed. */
static const char scripts[] =
    "Adlam Ahom Anatolian_hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_vah Batak Bengali Bhaiksuki "
    "Bopomofo Brahmi Braille Buginese Buhid Canadian_aboriginal Carian Caucasian_albanian Chakma Cham Cherokee "
    "Coptic Cuneiform Cypriot Cyrillic Deseret Duployan Egyptian_hieroglyphs Elbasan Ethiopic Georgian "
    "Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Hangul Hanunoo Hatran Hebrew Imperial_aramaic Inherited "
    "Inscriptional_pahlavi Inscriptional_parthian Javanese Kaithi Kannada Kayah_li Kharoshthi Khmer Khojki "
    "Khudawadi Lao Latin Lepcha Limbu Linear_a Linear_b Lisu Lycian Lydian Mahajani Malayalam Mandaic Manichaean "
    "Marchen Meetei_mayek Mende_kikakui Meroitic_cursive Meroitic_hieroglyphs Miao Modi Mongolian Mro Multani "
    "Myanmar Nabataean New_tai_lue Newa Nko Ogham Ol_chiki Old_hungarian Old_italic Old_north_arabian Old_permic "
    "Old_persian Old_south_arabian Old_turkic Oriya Osage Osmanya Pahawh_hmong Palmyrene Pau_cin_hau Phags_pa "
    "Phoenician Psalter_pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala "
    "Sora_sompeng Sundanese Syloti_nagri Syriac Tagalog Tagbanwa Tai_le Tai_tham Tai_viet Takri Tamil Tangut "
    "Telugu Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai Warang_citi Yi";

/* A run starts with a character of its script; spaces, unassigned, newer and private characters after it belong to
 * it. */
static void append_run(const char *set, lp_buf *out) {
  lp_buf_printf(out, "|[%s](?:[%s]|\\g<any>)*", set, set);
}

/* Four characters have another script now, and U+30FC is not Common here as it is for Unicode. */
void lp_pattern_of_scripts(lp_buf *out) {
  lp_buf newer = {0};
  lp_unicode_append_since(10, &newer);
  lp_buf_printf(out, "(?<any>[\\x{20}\\p{Cn}\\p{Co}%s]){0}(?!\\g<any>)(?:(?!)", lp_buf_text(&newer));
  lp_buf_free(&newer);
  append_run("\\p{Han}\\p{Hiragana}\\p{Katakana}\\x{30FC}", out);
  append_run("\\p{Common}\\x{589}\\x{61C}&&[^\\x{20}\\x{30FC}]", out);
  append_run("\\p{Devanagari}\\x{953}\\x{954}", out);
  for (const char *name = scripts; *name != '\0';) {
    int size = (int)strcspn(name, " ");
    char set[96];
    (void)snprintf(set, sizeof set, "\\p{%.*s}&&[^\\x{589}\\x{61C}\\x{953}\\x{954}]", size, name);
    append_run(set, out);
    name += size + (name[size] == ' ');
  }
  lp_buf_puts(out, ")");
}
